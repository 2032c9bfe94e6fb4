#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/json.hpp"
#include "outbox/tool.hpp"

namespace tools {

// Where a listing is, for `page.number` and `page.cursor`.
struct Page {
    int number = 1;
    std::string cursor;
};

// What templates of one call can see: data of the operation, nothing of this process. Borrowed
// for one rendering.
struct Scope {
    const outbox::ToolCall& call;
    const Page* page = nullptr;
};

// The value of a path that the compiler accepted; empty: the operation has no such value.
[[nodiscard]] std::optional<outbox::Json> lookup(
    const Scope& scope, const std::vector<std::string>& path
);

// Roots and their fixed members; empty: any member.
struct Root {
    std::string_view name;
    std::vector<std::string> members;
};
[[nodiscard]] const std::vector<Root>& template_roots();

// 2026-01-02T03:04:05Z, with six digits of the second when it is no whole one.
[[nodiscard]] std::string to_iso8601(outbox::DbTime time);
// RFC 3339 with a zone.
[[nodiscard]] std::optional<outbox::DbTime> parse_iso8601(std::string_view text);

}  // namespace tools
