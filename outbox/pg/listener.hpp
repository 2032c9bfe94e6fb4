#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "outbox/pg/session.hpp"

namespace outbox::pg {

namespace asio = boost::asio;

struct ListenerOptions {
    std::string dsn;
    std::vector<std::string> tools;
    std::chrono::milliseconds idle_poll{1'000};  // how far trying for a lock backs off
};

// Wake on demand (DESIGN): one thread with one connection that listens for work. A tool without
// work for 100 ms falls asleep: its advisory lock is taken, which makes planners notify, and it is
// polled once more. A wake-up gives the lock back at once. All of it is a hint; the idle poll is
// the truth, and through a pooler or while the connection is down nothing else is left.
// start() and stop() may be called in any order and twice; stop() waits for the thread.
class Listener {
 public:
    using OnWake = std::function<void(const std::string& tool)>;

    // on_wake runs on the executor: poll this tool now. The listener must outlive what it posted.
    Listener(ListenerOptions options, asio::any_io_executor executor, OnWake on_wake);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    void start();
    void stop();
    // The same without waiting: its locks and its connection go soon.
    void request_stop();

    // What the last poll of a tool brought. To be told after every poll.
    void polled(const std::string& tool, bool found_work);

    // A notification can arrive: connected, and no pooler between.
    [[nodiscard]] bool listening() const { return listening_; }
    // A pooler stands between: there will be no wake-up, ever.
    [[nodiscard]] bool poll_only() const { return poll_only_; }

 private:
    using Time = std::chrono::steady_clock::time_point;

    struct ToolState {
        std::optional<Time> idle_since;  // empty: it had work, or nobody looked since a wake-up
        bool asleep = false;             // its lock is ours
        Time next_try{};
        std::chrono::milliseconds delay{0};
    };

    void run(const std::stop_token& stop);
    void serve(const std::stop_token& stop);
    void notified(const std::string& tool);
    void fall_asleep(Session& session);
    void wake_up(Session& session);
    void wake(const std::string& tool);
    void wait(int socket, std::chrono::milliseconds longest);
    [[nodiscard]] std::chrono::milliseconds until_next_step();
    void poke() const;

    ListenerOptions options_;
    asio::any_io_executor executor_;
    OnWake on_wake_;
    int event_ = -1;  // eventfd: stop() and polled() end a wait
    std::mutex mutex_;
    std::map<std::string, ToolState> tools_;  // under mutex_
    std::atomic<bool> listening_ = false;
    std::atomic<bool> poll_only_ = false;
    std::jthread thread_;
};

}  // namespace outbox::pg
