#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "outbox/pg/session.hpp"

namespace outbox::pg {

namespace asio = boost::asio;

// Hears which operations have ended (LISTEN outbox_done): one thread with one connection. A hint:
// who waits polls as well, for a notification can be skipped, or lost with the connection, and
// never comes through a pooler in transaction mode. start() and stop() may be called in any order
// and twice; stop() waits for the thread.
class DoneListener {
 public:
    using OnDone = std::function<void(const std::vector<std::string>& operation_ids)>;

    // on_done runs on the executor. The listener must outlive what it posted.
    DoneListener(std::string dsn, asio::any_io_executor executor, OnDone on_done);
    ~DoneListener();
    DoneListener(const DoneListener&) = delete;
    DoneListener& operator=(const DoneListener&) = delete;

    void start();
    void stop();

    // A notification can arrive: connected, and no pooler between.
    [[nodiscard]] bool listening() const { return listening_; }

 private:
    void run(const std::stop_token& stop);
    void serve(const std::stop_token& stop);
    void heard(std::string_view payload);
    void wait(int socket, std::chrono::milliseconds longest);

    std::string dsn_;
    asio::any_io_executor executor_;
    OnDone on_done_;
    int event_ = -1;  // eventfd: stop() ends a wait
    std::atomic<bool> listening_ = false;
    bool poll_only_ = false;  // of the thread: a pooler stands between
    std::jthread thread_;
};

}  // namespace outbox::pg
