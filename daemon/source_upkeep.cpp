// What a source does beside the work: gauges and tallies, and whether its database answers at all.
#include <chrono>
#include <string>
#include <utility>

#include "daemon/source.hpp"

namespace outboxd {
namespace {

using std::chrono_literals::operator""s;

constexpr auto kWatchEvery = 1s;
constexpr auto kSampleEvery = 5s;
constexpr int kHorizonPasses = 3;  // of the above: what it is for is measured in minutes

}  // namespace

void Source::start_upkeep() {
    upkeep_.spawn("watch", watch());
    upkeep_.spawn("sample", sample());
    upkeep_.spawn("retention", keep_retention());
}

asio::awaitable<void> Source::joined(outbox::TaskGroup& group) {
    co_await group.join();
}

// A database that is silent (a machine that froze, a partition) fails nothing and says nothing: the
// statement under way just does not end.
asio::awaitable<void> Source::watch() {
    bool silent = false;
    while (!ended_) {
        if (started()) {
            const bool now = !answers();
            if (now) metrics_.database_up(false);
            if (now && !silent) {
                log_.warn("the database does not answer: nothing of it is leased or recorded");
            } else if (!now && silent) {
                log_.info("the database answers again");
            }
            silent = now;
        }
        co_await watch_bell_.wait(kWatchEvery);
    }
}

// Page by page: after an outage of all daemons there may be a lot.
asio::awaitable<void> Source::roll_up() {
    for (bool more = true; more && !ended_ && stop_requests_ == 0;) {
        auto counting = generations_.back()->roll_up();
        const auto counted = co_await std::move(counting);
        metrics_.add_tallies(counted.tools);
        more = counted.more;
    }
}

asio::awaitable<void> Source::look_at_horizon() {
    auto looking = generations_.back()->horizon();
    const auto [next_id, ids_back] = co_await std::move(looking);
    metrics_.set_horizon_age(
        horizon_age_.observe(std::chrono::steady_clock::now(), next_id, ids_back)
    );
}

asio::awaitable<void> Source::sample() {
    for (int pass = 0; !ended_; ++pass) {
        if (stop_requests_ == 0 && answers()) {
            try {
                auto sampling = generations_.back()->sample();
                const auto samples = co_await std::move(sampling);
                metrics_.set_samples(samples);
                auto flagged = generations_.back()->attention();
                metrics_.set_attention(co_await std::move(flagged));
                auto counting = roll_up();
                co_await std::move(counting);
                if (pass % kHorizonPasses == 0) {
                    auto looking = look_at_horizon();
                    co_await std::move(looking);
                }
            } catch (const outbox::StoreError& error) {
                metrics_.database_error(error.kind());
                log_.warn("could not sample the queue, trying again", {{"error", error.what()}});
            }
        }
        if (!ended_) co_await sample_bell_.wait(kSampleEvery);
    }
}

}  // namespace outboxd
