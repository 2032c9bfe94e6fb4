#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace config {

// A place in a configuration file; line and column start at 1, 0 means "no place".
struct Mark {
    std::shared_ptr<const std::string> file;
    int line = 0;
    int column = 0;
};

enum class Severity { error, warning };

struct Diagnostic {
    Severity severity = Severity::error;
    Mark mark;
    std::string message;  // what is wrong
    std::string hint;     // the way out; may be empty
};

// Collects every mistake of a file: checking goes on after each.
class Diagnostics {
 public:
    void error(Mark mark, std::string message, std::string hint = {}) {
        list_.push_back({Severity::error, std::move(mark), std::move(message), std::move(hint)});
    }
    void warning(Mark mark, std::string message, std::string hint = {}) {
        list_.push_back({Severity::warning, std::move(mark), std::move(message), std::move(hint)});
    }
    [[nodiscard]] bool has_errors() const;
    [[nodiscard]] const std::vector<Diagnostic>& all() const { return list_; }
    // In the order of the file; equal places keep the order of finding.
    void sort();

 private:
    std::vector<Diagnostic> list_;
};

// "file:line:column: error: message" and, below it, "  hint: …".
[[nodiscard]] std::string to_text(const Diagnostic& diagnostic);
// One JSON object: file, line, column, level, message, hint.
[[nodiscard]] std::string to_json(const Diagnostic& diagnostic);

}  // namespace config
