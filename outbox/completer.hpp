#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "outbox/backoff.hpp"
#include "outbox/bell.hpp"
#include "outbox/clock.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/log.hpp"
#include "outbox/observer.hpp"
#include "outbox/store.hpp"
#include "outbox/transition.hpp"

namespace outbox {

// Records what attempts and probes ended as. Group commit: whatever queued during the last round
// trip goes in one call. Every writer waits here for its own fate, so the queue is bounded by the
// slots of executor and reconciler. Runs on the io thread; what the database does not take stays
// and is tried again until it does, or until abandon().
class Completer {
 public:
    struct Settings {
        std::size_t max_batch = 1'000;
        std::size_t max_result = std::size_t{64} * 1024;  // limits.result
    };
    Completer(
        asio::any_io_executor executor,
        Store& store,
        Observer& observer,
        Log& log,
        Failpoints& failpoints,
        Settings settings
    );

    asio::awaitable<void> run();
    void stop();     // run() returns once everything queued is written
    void abandon();  // … or given up: what is left ends without a fate

    // Writes one transition; a fenced attempt's answer is filed as evidence. Empty when it was
    // abandoned: its lease expires, and the operation becomes unknown.
    asio::awaitable<std::optional<Fate>> write(Transition transition);

    // What the other side worded becomes what jsonb can hold, within limits.result. write() does
    // it by itself; may be called from any thread.
    void make_storable(Transition& transition) const;

    [[nodiscard]] std::size_t queued() const { return queue_.size() + waiting_.size(); }

 private:
    struct Entry {
        Entry(asio::any_io_executor executor, Transition t)
            : transition(std::move(t)), settled(std::move(executor)) {}
        Transition transition;
        Bell settled;
        bool done = false;
        std::optional<Fate> fate;
        Backoff backoff;
        BootClock::time_point not_before{};
    };
    using Batch = std::vector<Entry*>;

    Batch next_batch();
    [[nodiscard]] std::chrono::nanoseconds until_next() const;
    asio::awaitable<void> write_batch(Batch batch);
    // Empty when it was written.
    asio::awaitable<std::optional<StoreError::Kind>> try_write(const Batch& batch);
    void split_or_wait(Batch batch, std::vector<Batch>& parts);
    asio::awaitable<void> record_late(Transition transition);
    static void settle(Entry& entry, std::optional<Fate> fate);
    void give_up(Batch batch);

    asio::any_io_executor executor_;
    Store& store_;
    Observer& observer_;
    Log& log_;
    Failpoints& failpoints_;
    Settings settings_;
    Bell bell_;
    Bell retry_;
    Backoff backoff_;
    std::deque<Entry*> queue_;
    std::vector<Entry*> waiting_;  // single rows that the database refused for now
    bool stopping_ = false;
    bool abandoned_ = false;
    bool closed_ = false;  // run() returned
};

}  // namespace outbox
