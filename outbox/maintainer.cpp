#include "outbox/maintainer.hpp"

#include <string>
#include <utility>

namespace outbox {

Maintainer::Maintainer(
    asio::any_io_executor executor,
    Store& store,
    Observer& observer,
    Log& log,
    Failpoints& failpoints,
    Random& random,
    Settings settings
)
    : store_(store),
      observer_(observer),
      log_(log),
      failpoints_(failpoints),
      random_(random),
      settings_(settings),
      alarm_(std::move(executor)) {}

asio::awaitable<void> Maintainer::run() {
    while (!stopping_) {
        std::chrono::nanoseconds pause{};
        try {
            auto working = page();
            const bool more = co_await std::move(working);
            backoff_.reset();
            if (!more) pause = random_.jittered(settings_.poll);
        } catch (const std::exception& error) {
            pause = backoff_.next();
            count_error(observer_, error);
            log_.warn("maintenance failed, trying again", {{"error", error.what()}});
        }
        co_await alarm_.wait(pause);
    }
}

void Maintainer::stop() {
    stopping_ = true;
    alarm_.wake();
}

// True when a page was full: there is more to do at once.
asio::awaitable<bool> Maintainer::page() {
    co_await failpoints_.hit(FailpointId::before_maintain);
    auto maintaining = store_.maintain(may_judge && may_judge());
    const auto report = co_await std::move(maintaining);
    if (report.lease_expired > 0) {
        log_.warn(
            "attempts ended without a report", {{"rows", std::to_string(report.lease_expired)}}
        );
    }
    for (const auto& [tool, count] : report.became_unknown) {
        for (int i = 0; i < count; ++i) observer_.became_unknown(tool, Cause::lease_expired);
    }
    const bool any = report.promoted > 0 || report.lease_expired > 0 || report.expired > 0;
    if (any && on_progress) on_progress(report);
    co_return report.more;
}

}  // namespace outbox
