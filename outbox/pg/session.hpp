#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "outbox/observer.hpp"
#include "outbox/pg/compat.hpp"

namespace outbox::pg {

struct SessionSettings {
    std::chrono::milliseconds statement_timeout{30'000};
    std::chrono::milliseconds lock_timeout{2'000};
    // For a lane that sends the same few statements again and again: they are prepared, unless a
    // pooler stands between, and planned seldom, without the parameters (hot_settings.sql).
    bool hot = false;
};

// One connection and the two ways to use it. Belongs to one thread (libpqxx's rule).
// Statements are single autocommit statements with their parameters. Through a pooler in
// transaction mode nothing is prepared and no state of the session is relied upon.
class Session {
 public:
    // Throws StoreError: unavailable when the server cannot be had. The observer may be null.
    Session(const std::string& dsn, SessionSettings settings, Observer* observer);

    // Text is one of outbox::sql; a broken connection is unavailable for a read and in_doubt for
    // a write, which may have been committed.
    pqxx::result read(const std::string& text, const Parameters& parameters);
    pqxx::result write(const std::string& text, const Parameters& parameters);
    // For a pooler: both statements in one transaction, so on one server; nothing is written when
    // the condition's first row does not say true.
    std::optional<pqxx::result> write_if(
        const std::string& condition, const std::string& text, const Parameters& parameters
    );

    [[nodiscard]] bool is_open() const { return !broken_ && connection_.is_open(); }
    // A pooler stands between: the process that answers is not the one we were introduced to.
    [[nodiscard]] bool pooled() const { return pooled_; }
    [[nodiscard]] Connection& connection() { return connection_; }
    // What a new session owes before its first lease (TimelineGuard) is done.
    [[nodiscard]] bool checked() const { return checked_; }
    void set_checked(bool checked) { checked_ = checked; }

 private:
    void introduce();
    // Prepares a statement at its first use.
    pqxx::result run_hot(
        pqxx::transaction_base& transaction, const std::string& text, const Parameters& parameters
    );
    pqxx::result run(const std::string& text, const Parameters& parameters, bool writes);
    std::optional<pqxx::result> run_pooled(
        const std::string* condition, const std::string& text, const Parameters& parameters
    );
    [[noreturn]] void rethrow(const std::exception& error, bool writes);

    Connection connection_;
    SessionSettings settings_;
    Observer* observer_;
    bool pooled_ = false;
    bool checked_ = false;
    bool broken_ = false;  // a prepared statement does not hold any more
    std::set<std::string, std::less<>> prepared_;
    std::chrono::steady_clock::time_point planned_ = std::chrono::steady_clock::now();
};

}  // namespace outbox::pg
