#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "outbox/elsewhere.hpp"
#include "outbox/observer.hpp"
#include "outbox/pg/pg_error.hpp"
#include "outbox/pg/session.hpp"

namespace outbox::pg {

namespace asio = boost::asio;

// One thread that owns one connection. Jobs run in order; the connection, its results and whatever
// libpqxx throws never leave the thread. A connection that broke is replaced by the next job, with
// a back-off between failures, never behind a statement's back.
// Stops with its destructor, which waits for the job under way; a job's time limit is the server's.
class Lane {
 public:
    Lane(std::string dsn, SessionSettings settings, Observer* observer);
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    // Runs work(session) on the lane's thread and resumes the caller on its own executor. Throws
    // StoreError. The result must be default-constructible (co_spawn's rule). Not cancellable:
    // abandoning a commit would make an unknown of it.
    template <class Work>
    auto run(Work work) -> asio::awaitable<std::invoke_result_t<Work&, Session&>> {
        auto task = call(std::move(work));  // named: house-style rule 11
        return elsewhere(pool_.get_executor(), std::move(task));
    }

 private:
    template <class Work>
    auto call(Work work) -> asio::awaitable<std::invoke_result_t<Work&, Session&>> {
        try {
            co_return work(session());
        } catch (const std::exception& error) {
            drop_broken_session();
            rethrow_as_store_error(error, During::write);
        }
    }

    // The open session, or a new one; throws StoreError unavailable, at once while backing off.
    Session& session();
    void drop_broken_session();

    std::string dsn_;
    SessionSettings settings_;
    Observer* observer_;
    std::unique_ptr<Session> session_;
    std::chrono::milliseconds delay_{0};
    std::chrono::steady_clock::time_point not_before_{};
    asio::thread_pool pool_{1};  // last: nothing above is used once it is joined
};

}  // namespace outbox::pg
