#include "config/diagnostics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "config/utf8.hpp"

namespace config {
namespace {

std::string_view level(Severity severity) {
    return severity == Severity::error ? "error" : "warning";
}

std::string_view file_of(const Mark& mark) {
    return mark.file ? std::string_view(*mark.file) : std::string_view();
}

auto place(const Diagnostic& d) {
    return std::tuple(file_of(d.mark), d.mark.line, d.mark.column);
}

}  // namespace

bool Diagnostics::has_errors() const {
    return std::any_of(list_.begin(), list_.end(), [](const Diagnostic& d) {
        return d.severity == Severity::error;
    });
}

void Diagnostics::sort() {
    std::stable_sort(list_.begin(), list_.end(), [](const Diagnostic& a, const Diagnostic& b) {
        return place(a) < place(b);
    });
    // What an anchor holds is read once per alias: one mistake, one line.
    auto same = [](const Diagnostic& a, const Diagnostic& b) {
        return place(a) == place(b) && a.message == b.message;
    };
    list_.erase(std::unique(list_.begin(), list_.end(), same), list_.end());
}

std::string to_text(const Diagnostic& diagnostic) {
    std::string out;
    const auto file = file_of(diagnostic.mark);
    if (!file.empty()) out += fmt::format("{}:", file);
    if (diagnostic.mark.line > 0) {
        out += fmt::format("{}:{}:", diagnostic.mark.line, diagnostic.mark.column);
    }
    if (!out.empty()) out += ' ';
    out += fmt::format("{}: {}", level(diagnostic.severity), diagnostic.message);
    if (!diagnostic.hint.empty()) out += fmt::format("\n  hint: {}", diagnostic.hint);
    return out;
}

std::string to_json(const Diagnostic& diagnostic) {
    return fmt::format(
        R"({{"file":{},"line":{},"column":{},"level":"{}","message":{},"hint":{}}})",
        json_string(file_of(diagnostic.mark)),
        diagnostic.mark.line,
        diagnostic.mark.column,
        level(diagnostic.severity),
        json_string(diagnostic.message),
        json_string(diagnostic.hint)
    );
}

}  // namespace config
