#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/pg/notify_thread.hpp"

namespace outbox::pg {

namespace asio = boost::asio;

// Hears which operations have ended (LISTEN outbox_done). A hint: who waits polls as well, for a
// notification can be skipped.
class DoneListener : private NotifyThread::Ear {
 public:
    using OnDone = std::function<void(const std::vector<std::string>& operation_ids)>;

    // on_done runs on the executor. The listener must outlive what it posted.
    DoneListener(std::string dsn, asio::any_io_executor executor, OnDone on_done);
    ~DoneListener() override = default;
    DoneListener(const DoneListener&) = delete;
    DoneListener& operator=(const DoneListener&) = delete;

    // As NotifyThread's.
    void start() { thread_.start(); }
    void stop() { thread_.stop(); }
    [[nodiscard]] bool listening() const { return thread_.listening(); }

 private:
    void heard(std::string_view payload) override;

    asio::any_io_executor executor_;
    OnDone on_done_;
    NotifyThread thread_;  // last: it uses all of the above
};

}  // namespace outbox::pg
