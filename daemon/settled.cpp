#include "daemon/settled.hpp"

#include <algorithm>

#include "config/units.hpp"
#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "daemon/pause.hpp"

namespace outboxd {

using std::chrono_literals::operator""ms;

std::optional<std::chrono::milliseconds> parse_wait(const std::string& text) {
    if (text.empty()) return std::nullopt;
    auto limit = config::parse_duration(text);
    if (!limit) throw CommandError(kUsage, "--wait takes a duration with its unit, such as 30s");
    return limit;
}

bool is_final(const outbox::Json& row) {
    const std::string status = member_text(row, "status");
    return status == "succeeded" || status == "failed" || status == "cancelled";
}

outbox::Json wait_settled(
    outbox::pg::Client& client, const outbox::Json& receipt, std::chrono::milliseconds limit
) {
    const auto end = std::chrono::steady_clock::now() + limit;
    const std::string id = member_text(receipt, "operation_id");
    auto pause = 10ms;
    for (;;) {
        auto row = row_of(client.get(id).value_or("{}"));
        row.set("replayed", *receipt.find("replayed"));
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now()
        );
        if (is_final(row) || left <= 0ms) return row;
        pause_for(std::min(pause, left));
        pause = std::min(pause * 2, 250ms);
    }
}

}  // namespace outboxd
