// Retention by the configuration: one more small loop on the maintain lane. Keys are never
// forgotten here; that takes a person (outboxd forget-keys).
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "daemon/source.hpp"

namespace outboxd {
namespace {

using std::chrono_literals::operator""min;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr auto kRetentionEvery = 1min;
constexpr int kRows = 200;  // in one transaction
// Three quarters of the time the lane belongs to claims and promotion, and the disk to planners.
constexpr std::chrono::nanoseconds kShortestPause = 50ms;
constexpr std::chrono::nanoseconds kLongestPause = 5s;

}  // namespace

asio::awaitable<std::int64_t> Source::prune(
    outbox::pg::Prune what, std::chrono::milliseconds older_than
) {
    std::int64_t pruned = 0;
    std::int64_t after = 0;
    for (bool more = true; more && !ended_ && stop_requests_ == 0;) {
        const auto start = std::chrono::steady_clock::now();
        auto pruning = generations_.back()->prune(what, older_than, after, kRows);
        const auto page = co_await std::move(pruning);
        const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
        pruned += page.pruned;
        after = page.next;
        more = page.more && !page.busy;  // the other one does it all
        if (more && !ended_) {
            co_await retention_bell_.wait(std::clamp(took * 3, kShortestPause, kLongestPause));
        }
    }
    co_return pruned;
}

asio::awaitable<void> Source::keep_retention() {
    while (!ended_) {
        if (stop_requests_ == 0 && answers()) {
            try {
                auto payloads = prune(outbox::pg::Prune::payloads, config_.retention.payloads);
                const auto pruned = co_await std::move(payloads);
                auto events = prune(outbox::pg::Prune::events, config_.retention.events);
                const auto gone = co_await std::move(events);
                if (pruned + gone > 0) {
                    log_.info(
                        "pruned",
                        {{"payloads", std::to_string(pruned)}, {"events", std::to_string(gone)}}
                    );
                }
            } catch (const outbox::StoreError& error) {
                metrics_.database_error(error.kind());
                log_.warn("could not prune, trying again", {{"error", error.what()}});
            }
        }
        if (!ended_) co_await retention_bell_.wait(kRetentionEvery);
    }
}

}  // namespace outboxd
