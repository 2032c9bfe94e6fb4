#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "tools/rules.hpp"

namespace tools {

// `exit_codes: { 0: succeeded, 75: retry, default: unknown }`.
template <class End>
class ExitCodes {
 public:
    using Pairs = std::vector<std::pair<std::string, config::Text>>;
    using CompileEnd = std::optional<End> (*)(const config::Text&, config::Diagnostics&);

    static ExitCodes compile(
        const Pairs& pairs, CompileEnd compile_end, config::Diagnostics& diagnostics
    ) {
        ExitCodes result;
        for (const auto& [code, then] : pairs) {
            const auto end = compile_end(then, diagnostics);
            if (code == "default") {
                result.default_ = end;
            } else if (const auto number = parse(code)) {
                result.ends_[*number] = end;
            } else {
                diagnostics.error(
                    then.mark, "\"" + code + "\" is no exit code", "0 to 255, or default"
                );
            }
        }
        return result;
    }

    void set(int code, End end) { ends_[static_cast<std::size_t>(code)] = end; }
    // What the file says about a code; empty: nothing.
    [[nodiscard]] std::optional<End> of(int code) const {
        if (code < 0 || code >= kCodes) return default_;
        const auto& end = ends_[static_cast<std::size_t>(code)];
        return end ? end : default_;
    }

 private:
    static constexpr int kCodes = 256;

    static std::optional<std::size_t> parse(const std::string& text) {
        if (text.empty() || text.size() > 3) return std::nullopt;
        std::size_t number = 0;
        for (const char c : text) {
            if (c < '0' || c > '9') return std::nullopt;
            number = number * 10 + static_cast<std::size_t>(c - '0');
        }
        if (number >= kCodes) return std::nullopt;
        return number;
    }

    std::array<std::optional<End>, kCodes> ends_{};
    std::optional<End> default_;
};

}  // namespace tools
