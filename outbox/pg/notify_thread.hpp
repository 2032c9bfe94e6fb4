#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "outbox/pg/session.hpp"

namespace outbox::pg {

// One thread with one connection that LISTENs on one channel: connects again with a back-off when
// it is lost, and looks after it with a ping. What it hears is a hint: notifications are lost with
// the connection, and never come through a pooler in transaction mode; there it ends by itself.
// start() and stop() may be called in any order and twice. stop() waits for the thread; one that a
// silent server holds has its connection cut, so that it waits for a second at most once connected.
class NotifyThread {
 public:
    // What is done on the thread. Exceptions lose the connection.
    class Ear {
     public:
        virtual ~Ear() = default;
        // Before connecting: what a connection held is gone with it.
        virtual void connecting() {}
        // Connected; nothing is listened for yet.
        virtual void prepare(Session&) {}
        // LISTEN is in force from now on.
        virtual void subscribed() {}
        virtual void heard(std::string_view payload) = 0;
        // Between two waits. For how long the next one may last.
        virtual std::chrono::milliseconds step(Session&) { return std::chrono::hours{1}; }
    };
    struct Options {
        std::string dsn;
        std::string channel;
        std::chrono::milliseconds ping;  // a connection that died without a word is noticed by then
    };

    // The ear must live until stop() has returned.
    NotifyThread(Options options, Ear& ear);
    ~NotifyThread();
    NotifyThread(const NotifyThread&) = delete;
    NotifyThread& operator=(const NotifyThread&) = delete;

    void start();
    void stop();
    // The same without waiting: the connection goes soon.
    void request_stop();
    // Ends a wait: step() is called at once.
    void poke() const;

    // A notification can arrive: connected, and no pooler between.
    [[nodiscard]] bool listening() const { return listening_; }
    // A pooler stands between: there will be none, ever.
    [[nodiscard]] bool poll_only() const { return poll_only_; }

 private:
    class Socket;
    void run(const std::stop_token& stop);
    void serve(const std::stop_token& stop);
    void wait(int socket, std::chrono::milliseconds longest);
    void cut();

    Options options_;
    Ear& ear_;
    int event_ = -1;  // eventfd: ends a wait
    std::atomic<bool> listening_ = false;
    std::atomic<bool> poll_only_ = false;
    std::mutex mutex_;
    int socket_ = -1;  // of the open connection; under mutex_
    std::future<void> ended_;
    std::jthread thread_;
};

}  // namespace outbox::pg
