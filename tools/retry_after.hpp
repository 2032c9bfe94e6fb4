#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "config/value.hpp"
#include "tools/answer.hpp"
#include "tools/extraction.hpp"

namespace tools {

// `retry_after:`: header (Retry-After), header:X-Reset, a duration (2s), or a body pointer.
class RetryAfter {
 public:
    static std::optional<RetryAfter> compile(
        const config::Text& text, config::Diagnostics& diagnostics
    );
    static RetryAfter header(std::string name);

    // Empty when the answer does not say it in a way that can be understood. `now` is this
    // machine's wall clock; a date is compared with the answer's own Date header when it has one.
    [[nodiscard]] std::optional<std::chrono::milliseconds> read(
        const Answer& answer, std::chrono::system_clock::time_point now
    ) const;

    // False: the file says how long.
    [[nodiscard]] bool from_answer() const { return std::holds_alternative<Source>(from_); }

 private:
    std::variant<Source, std::chrono::milliseconds> from_;
};

// IMF-fixdate of RFC 9110: Sun, 06 Nov 1994 08:49:37 GMT.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text);

}  // namespace tools
