#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outbox/json.hpp"

namespace tools {

// What the other side said, in the one form that conditions and extraction understand.
struct Answer {
    std::optional<int> status;     // http
    std::optional<int> exit_code;  // command
    std::optional<int> rows;       // sql; the body is an array of objects
    // mcp: the code of an error, which is the body then; or what kind of result the body is, and of
    // a complete one whether the tool calls it an error.
    std::optional<int> rpc_error;
    std::optional<std::string> result_type;
    std::optional<bool> is_error;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string text;                  // the raw body, or standard output
    std::optional<outbox::Json> body;  // empty: the text is no JSON
    bool truncated = false;            // the text is only the beginning
    std::string diagnosis;             // standard error of a command, for messages

    // There is a body and it cannot be understood: nothing can be said about its members.
    [[nodiscard]] bool unreadable() const { return truncated || (!body && !text.empty()); }
    // First value of a header, by case-insensitive name.
    [[nodiscard]] const std::string* header(std::string_view name) const;
};

// Parses the text into the body, tolerating broken UTF-8.
void parse_body(Answer& answer);

[[nodiscard]] bool same_header_name(std::string_view a, std::string_view b);

}  // namespace tools
