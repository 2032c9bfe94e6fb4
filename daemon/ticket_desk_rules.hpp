#pragma once

#include <optional>
#include <string>
#include <variant>

#include "daemon/ticket_desk.hpp"

namespace outboxd {

// A rule from the body of POST /mode, or what is wrong with it:
// {"behaviour": "drop_after", "on": "create" | "list", "external_ref": …, "title": …, "next": 1,
//  "delay_ms": 1000, "status": 422, "retry_after": 1}
[[nodiscard]] std::variant<DeskRule, std::string> read_rule(const std::string& body);

[[nodiscard]] bool matches(
    const DeskRule& rule, bool on_list, const std::string& external_ref, const std::string& title
);

// Members of a JSON object, when they are there and of that type.
[[nodiscard]] std::optional<std::string> text_member(const outbox::Json& object, const char* name);
[[nodiscard]] std::optional<std::int64_t> number_member(
    const outbox::Json& object, const char* name
);
[[nodiscard]] std::optional<std::int64_t> to_number(const std::string& text);

}  // namespace outboxd
