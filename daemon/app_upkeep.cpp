// What App does beside the work: the watchdog, the private Postgres, /readyz.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/app.hpp"
#include "daemon/sd_notify.hpp"

namespace outboxd {
namespace {

using std::chrono_literals::operator""ms;

constexpr auto kPostgresEvery = 500ms;

}  // namespace

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

// Of several sources, one whose database is away or silent is not this process's fault, and the
// others are served: it is told, and an alert watches outboxd_database_up. One that is refused
// (another schema, another namespace) is a mistake of who deployed it: a rollout should stop here.
AdminServer::Ready App::readiness() const {
    if (stop_requests_ > 0) return {.missing = "stopping"};
    if (alone()) return {.missing = sources_.front()->trouble()};
    AdminServer::Ready ready;
    bool served = false;
    bool refused = false;
    for (const auto& source : sources_) {
        const auto trouble = source->trouble();
        served = served || !trouble;
        refused = refused || source->refused();
        ready.note += fmt::format("{}: {}\n", source->name(), trouble.value_or("served"));
    }
    if (!served || refused) ready.missing = std::exchange(ready.note, "");
    return ready;
}

bool App::any_started() const {
    return std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
        return source->started();
    });
}

bool App::any_opened() const {
    return std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
        return source->opened();
    });
}

}  // namespace outboxd
