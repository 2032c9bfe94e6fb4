#pragma once

#include <optional>
#include <string>
#include <string_view>

// W3C Trace Context, level 1. A planner's traceparent was checked by the database: 55 characters,
// version-trace-span-flags.
namespace outbox {

// The same trace with a span id of our own: what one attempt or look-up hands on.
[[nodiscard]] std::string child_traceparent(std::string_view parent);

// For the log; empty when the planner gave none.
[[nodiscard]] std::string trace_id(const std::optional<std::string>& traceparent);

}  // namespace outbox
