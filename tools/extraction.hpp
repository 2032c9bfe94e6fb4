#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/value.hpp"
#include "tools/answer.hpp"

namespace tools {

// Where one value of an answer is: a JSON Pointer, or header:Name.
struct Source {
    enum class Kind { pointer, header };
    Kind kind = Kind::pointer;
    std::string name;
};
// Mistakes are reported; empty then.
[[nodiscard]] std::optional<Source> compile_source(
    const config::Text& text, config::Diagnostics& diagnostics
);

// `result:`: one source, or a mapping of names to sources (mappings may nest). What cannot be
// extracted is null and said in the note: a rule that matched holds all the same.
class Extraction {
 public:
    static Extraction compile(const config::Value& value, config::Diagnostics& diagnostics);

    struct Extracted {
        outbox::Json value;
        std::string note;  // empty: everything was there
    };
    // Pointers are relative to `root`, the item of a listing or the body; null: there is none.
    [[nodiscard]] Extracted extract(const Answer& answer, const outbox::Json* root) const;

 private:
    using Members = std::vector<std::pair<std::string, Extraction>>;
    [[nodiscard]] outbox::Json extract(
        const Answer& answer, const outbox::Json* root, std::vector<std::string>& missing
    ) const;

    std::variant<std::monostate, Source, Members> node_;
};

// `code:` and `message:`: a source, or the text itself.
class TextSource {
 public:
    static TextSource compile(const config::Text& text, config::Diagnostics& diagnostics);
    // A scalar's text, without controls, at most max_bytes; empty when there is none.
    [[nodiscard]] std::optional<std::string> read(const Answer& answer, std::size_t max_bytes)
        const;

 private:
    std::optional<Source> source_;
    std::string literal_;
};

// A scalar of an answer as text for a person: controls become spaces, cut between characters.
[[nodiscard]] std::optional<std::string> presentable(
    const outbox::Json* value, std::size_t max_bytes
);

}  // namespace tools
