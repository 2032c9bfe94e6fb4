#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>

#include "outbox/alarm.hpp"
#include "outbox/backoff.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/log.hpp"
#include "outbox/observer.hpp"
#include "outbox/random.hpp"
#include "outbox/store.hpp"

namespace outbox {

// Promotes what is due, declares leases expired, ends what passed its expires_at: over every tool
// of the catalogue, served here or not, page by page. Runs on the io thread.
class Maintainer {
 public:
    struct Settings {
        std::chrono::milliseconds poll{500};
    };
    Maintainer(
        asio::any_io_executor executor,
        Store& store,
        Observer& observer,
        Log& log,
        Failpoints& failpoints,
        Random& random,
        Settings settings
    );

    // Whether this daemon may judge other workers by their heartbeats: only while its own
    // connection was healthy all the time.
    std::function<bool()> may_judge;
    // Called with what a page did, when it did anything.
    std::function<void(const MaintenanceReport&)> on_progress;

    asio::awaitable<void> run();
    void stop();
    // Something becomes due for promotion then.
    void expect(std::chrono::nanoseconds from_now) { alarm_.expect(from_now); }

 private:
    asio::awaitable<bool> page();

    Store& store_;
    Observer& observer_;
    Log& log_;
    Failpoints& failpoints_;
    Random& random_;
    Settings settings_;
    Alarm alarm_;
    Backoff backoff_;
    bool stopping_ = false;
};

}  // namespace outbox
