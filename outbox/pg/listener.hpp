#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/pg/notify_thread.hpp"

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
class Listener : private NotifyThread::Ear {
 public:
    using OnWake = std::function<void(const std::string& tool)>;

    // on_wake runs on the executor: poll this tool now. The listener must outlive what it posted.
    Listener(ListenerOptions options, asio::any_io_executor executor, OnWake on_wake);
    ~Listener() override = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    // As NotifyThread's. A stop without waiting: its locks and its connection go soon.
    void start() { thread_.start(); }
    void stop() { thread_.stop(); }
    void request_stop() { thread_.request_stop(); }

    // What the last poll of a tool brought. To be told after every poll.
    void polled(const std::string& tool, bool found_work);

    [[nodiscard]] bool listening() const { return thread_.listening(); }
    [[nodiscard]] bool poll_only() const { return thread_.poll_only(); }

 private:
    using Time = std::chrono::steady_clock::time_point;

    struct ToolState {
        std::optional<Time> idle_since;  // empty: it had work, or nobody looked since a wake-up
        bool asleep = false;             // its lock is ours
        Time next_try{};
        std::chrono::milliseconds delay{0};
    };

    void connecting() override;
    void prepare(Session& session) override;
    void subscribed() override;
    void heard(std::string_view payload) override;
    std::chrono::milliseconds step(Session& session) override;

    void fall_asleep(Session& session);
    void wake_up(Session& session);
    void wake(const std::string& tool);
    [[nodiscard]] std::chrono::milliseconds until_next_step();

    ListenerOptions options_;
    asio::any_io_executor executor_;
    OnWake on_wake_;
    std::mutex mutex_;
    std::map<std::string, ToolState> tools_;  // under mutex_
    NotifyThread thread_;                     // last: it uses all of the above
};

}  // namespace outbox::pg
