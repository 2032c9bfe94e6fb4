#pragma once

#include <string>

#include "config/config.hpp"
#include "outbox/json.hpp"
#include "outbox/pg/browse.hpp"

namespace outboxd {

// What the API shows of operations, under the redact: of their tools. The configuration has no
// secrets in it (config::without_secrets). Pure, and may run on any thread.

// {"items": […], "next": …}: at most `limit` of the rows, which may be one more than that.
[[nodiscard]] std::string api_list(
    const config::Config& config,
    const std::vector<outbox::pg::BrowsedOperation>& rows,
    std::size_t limit
);

// One operation with its whole story: operation, intent, work, events, and the request as the
// present configuration would send it.
[[nodiscard]] std::string api_story(
    const config::Config& config, const outbox::pg::ToldOperation& told
);

// {"items": rows, "next": null} of rows that are JSON texts.
[[nodiscard]] outbox::Json api_items(const std::vector<std::string>& rows);

}  // namespace outboxd
