// What App does beside the work: gauges and tallies, the watchdog, the private Postgres, /readyz.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <utility>

#include "daemon/app.hpp"
#include "daemon/sd_notify.hpp"
#include "daemon/text.hpp"

namespace outboxd {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr auto kSampleEvery = 5s;
constexpr int kHorizonPasses = 3;  // of the above: what it is for is measured in minutes
constexpr auto kPostgresEvery = 500ms;

// "the leaser has failed since 2026-01-31T12:00:00Z (14 s): …"
std::string trouble_text(const std::pair<std::string, outbox::Pulse::Trouble>& trouble) {
    const auto& [loop, details] = trouble;
    const auto lasting = std::chrono::duration_cast<std::chrono::seconds>(details.lasting);
    const auto since =
        std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - lasting);
    return fmt::format(
        "the {} has failed since {:%Y-%m-%dT%H:%M:%SZ} ({} s): {}",
        loop,
        fmt::gmtime(since),
        lasting.count(),
        printable(details.error)
    );
}

}  // namespace

// Page by page: after an outage of all daemons there may be a lot.
asio::awaitable<void> App::roll_up() {
    for (bool more = true; more && !ended_ && stop_requests_ == 0;) {
        auto counting = generations_.back()->roll_up();
        const auto counted = co_await std::move(counting);
        metrics_.add_tallies(counted.tools);
        more = counted.more;
    }
}

asio::awaitable<void> App::look_at_horizon() {
    auto looking = generations_.back()->horizon();
    const auto [next_id, ids_back] = co_await std::move(looking);
    metrics_.set_horizon_age(
        horizon_age_.observe(std::chrono::steady_clock::now(), next_id, ids_back)
    );
}

asio::awaitable<void> App::sample() {
    for (int pass = 0; !ended_; ++pass) {
        if (stop_requests_ == 0 && generations_.back()->engine().health().database) {
            try {
                auto sampling = generations_.back()->sample();
                const auto samples = co_await std::move(sampling);
                metrics_.set_samples(samples);
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

asio::awaitable<void> App::feed_watchdog() {
    const auto interval = sd::watchdog_interval();
    while (interval && !ended_) {
        sd::watchdog();
        co_await watchdog_bell_.wait(*interval);
    }
}

asio::awaitable<void> App::mind_postgres() {
    while (!ended_) {
        if (!options_.postgres->running()) {
            log_.error(
                "the private Postgres ended, starting it again",
                {{"log", options_.postgres->log_file()}}
            );
            options_.postgres->launch();
        }
        co_await postgres_bell_.wait(kPostgresEvery);
    }
}

std::optional<std::string> App::readiness() const {
    if (stop_requests_ > 0) return "stopping";
    if (generations_.empty()) return "starting";
    const auto health = generations_.back()->engine().health();
    if (!health.loops) return "a loop ended on a fault";
    if (!health.troubles.empty()) return trouble_text(health.troubles.front());
    if (!health.started) return "starting";
    if (!health.database) return "the database has not answered the heartbeat lately";
    return std::nullopt;
}

}  // namespace outboxd
