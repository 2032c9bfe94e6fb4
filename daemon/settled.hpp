#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "outbox/json.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {

// --wait of the commands that file something.
// Empty: not given; throws CommandError (usage) when it is no duration.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_wait(const std::string& text);

[[nodiscard]] bool is_final(const outbox::Json& row);

// Asks until the operation of the receipt is final or the time is up; whether the call replayed is
// kept from the receipt.
[[nodiscard]] outbox::Json wait_settled(
    outbox::pg::Client& client, const outbox::Json& receipt, std::chrono::milliseconds limit
);

}  // namespace outboxd
