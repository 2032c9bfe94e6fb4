#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "outbox/pg/lane.hpp"
#include "outbox/store.hpp"

namespace outboxd {

namespace asio = boost::asio;

// One lane for the admin server: a thread and a connection of its own, opened by the first use, so
// that no look of a person waits for the daemon's work or the other way round. Whoever asks waits
// for a bounded time, and not at all while an earlier answer is overdue: a database that is slow or
// gone is told at once, and the io thread never waits for it.
class ApiDatabase {
 public:
    // What an answer that does not come in time means: of a read nothing (unavailable), of a write
    // that it may have been done (in_doubt).
    using Late = outbox::StoreError::Kind;
    ApiDatabase(asio::any_io_executor executor, std::string dsn, Late late)
        : executor_(std::move(executor)),
          late_(late),
          lane_(
              std::move(dsn),
              {.statement_timeout = kStatementTime, .lock_timeout = kLockTime, .hot = false},
              nullptr
          ) {}

    // Runs work(session) on the lane's thread. Throws StoreError: unavailable when nothing was
    // begun, `late` when the answer takes too long, in which case what was begun goes on.
    template <class Work>
    auto run(Work work) -> asio::awaitable<std::invoke_result_t<Work&, outbox::pg::Session&>> {
        using Answer = std::invoke_result_t<Work&, outbox::pg::Session&>;
        struct Wait {
            explicit Wait(const asio::any_io_executor& executor) : timer(executor) {}
            asio::steady_timer timer;
            std::exception_ptr error;
            Answer answer{};
            bool done = false;
            bool left = false;
        };
        if (overdue_ > 0 || waiting_ >= kMostWaiting) refuse(Late::unavailable);
        auto wait = std::make_shared<Wait>(executor_);
        wait->timer.expires_after(kPatience);
        ++waiting_;
        auto ended = [this, wait](const std::exception_ptr& error, Answer answer) {
            --waiting_;
            if (wait->left) --overdue_;
            wait->done = true;
            wait->error = error;
            wait->answer = std::move(answer);
            wait->timer.cancel();
        };
        asio::co_spawn(executor_, lane_.run(std::move(work)), std::move(ended));
        co_await wait->timer.async_wait(asio::as_tuple(asio::use_awaitable));
        if (!wait->done) {
            wait->left = true;
            ++overdue_;
            refuse(late_);
        }
        if (wait->error) std::rethrow_exception(wait->error);
        co_return std::move(wait->answer);
    }

 private:
    static constexpr std::chrono::milliseconds kStatementTime{4'000};
    static constexpr std::chrono::milliseconds kLockTime{2'000};
    static constexpr std::chrono::milliseconds kPatience{5'000};
    static constexpr int kMostWaiting = 32;

    [[noreturn]] static void refuse(Late kind);

    asio::any_io_executor executor_;
    Late late_;
    int waiting_ = 0;
    int overdue_ = 0;  // of those, nobody waits for these any more
    outbox::pg::Lane lane_;
};

}  // namespace outboxd
