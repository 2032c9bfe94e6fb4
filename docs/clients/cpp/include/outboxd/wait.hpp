#pragma once

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <pqxx/pqxx>
#include <random>
#include <string>
#include <type_traits>
#include <utility>

#include "outboxd/calls.hpp"

namespace outboxd {

struct WaitOptions {
    std::chrono::milliseconds timeout{30'000};
    std::chrono::milliseconds poll{1'000};  // longest pause between two looks
};

namespace detail {

// Sleeps until something arrives on the connection, or the time is over.
inline void doze(Connection& connection, std::chrono::microseconds time) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
    (void)connection.await_notification(
        static_cast<std::time_t>(whole.count()), static_cast<long>((time - whole).count())
    );
}

inline void refuse_open_transaction(Connection& connection, const char* what) {
    try {
        pqxx::nontransaction probe(connection);
    } catch (const pqxx::usage_error&) {
        throw InTransaction(what);
    }
}

// May LISTEN wake us? Not behind a pooler, where the server's process is another one than the
// protocol named; and who listens already is woken anyway.
inline bool may_subscribe(Connection& connection) {
    pqxx::nontransaction session(connection);
    const auto row = execute(
        session,
        "SELECT pg_backend_pid(), 'outbox_done' IN (SELECT pg_listening_channels()), "
        "pg_is_in_recovery()",
        {}
    )[0];
    return std::stoi(row[0].c_str()) == connection.backendpid() &&
           std::string{row[1].c_str()} == "f" && std::string{row[2].c_str()} == "f";
}

}  // namespace detail

// The operation when it is final, or as it is when the time-out has passed: that throws nothing,
// look at final(). Empty when the id is unknown to the end. Asks in statements of its own, at least
// every `poll`, and is woken earlier by LISTEN where the session allows it. Throws InTransaction
// when the connection has an open transaction: one that has enqueued would wait for itself.
inline std::optional<Operation> wait(
    Connection& connection, const std::string& operation_id, WaitOptions options = {}
) {
    using clock = std::chrono::steady_clock;
    detail::refuse_open_transaction(connection, "wait");
    const auto end = clock::now() + options.timeout;
    std::optional<detail::Subscription> hints;
    if (options.timeout.count() > 0 && detail::may_subscribe(connection)) {
        hints.emplace(connection);
    }
    std::chrono::microseconds pause =
        std::min<std::chrono::microseconds>(std::chrono::milliseconds{20}, options.poll);
    for (;;) {
        std::optional<Operation> seen;
        {
            pqxx::nontransaction look(connection);
            seen = get(look, operation_id);
        }
        const auto left = end - clock::now();
        if ((seen && seen->final()) || left <= clock::duration::zero()) {
            return seen;
        }
        detail::doze(
            connection, std::min(pause, std::chrono::duration_cast<std::chrono::microseconds>(left))
        );
        pause = std::min<std::chrono::microseconds>(pause * 3 / 2, options.poll);
    }
}

// Runs work(transaction) and commits, and again after 40001 and 40P01, as Postgres wants it. work
// must read anew what it decides on; the ids stay the same, so nothing happens twice.
template <class Transaction = pqxx::work, class Work>
auto retry_transaction(Connection& connection, Work work, int attempts = 10)
    -> std::invoke_result_t<Work&, Transaction&> {
    detail::refuse_open_transaction(connection, "retry_transaction");
    std::minstd_rand random{std::random_device{}()};
    for (int attempt = 1;; ++attempt) {
        try {
            Transaction transaction(connection);
            if constexpr (std::is_void_v<std::invoke_result_t<Work&, Transaction&>>) {
                work(transaction);
                transaction.commit();
                return;
            } else {
                auto answer = work(transaction);
                transaction.commit();
                return answer;
            }
        } catch (const pqxx::serialization_failure&) {
            if (attempt >= attempts) {
                throw;
            }
        } catch (const pqxx::deadlock_detected&) {
            if (attempt >= attempts) {
                throw;
            }
        }
        const long most = std::min(1'000'000L, 10'000L << std::min(attempt, 10));
        detail::doze(
            connection,
            std::chrono::microseconds{std::uniform_int_distribution<long>{0, most}(random)}
        );
    }
}

}  // namespace outboxd
