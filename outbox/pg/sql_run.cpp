#include "outbox/pg/sql_run.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "outbox/pg/batch.hpp"
#include "outbox/pg/pg_error.hpp"
#include "outbox/pg/sql_rows.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using When = SqlFailure::When;

// How long a transaction of ours may stand still on the server. Within settle's default, so that a
// commit of a daemon that was frozen comes before "absent" may count.
constexpr auto kIdle = "5s";

// Ours is that of session_settings, set before anything else; theirs is the default of the role,
// the database and the dsn.
constexpr auto kOurPath = "SET LOCAL search_path TO pg_catalog, pg_temp";
constexpr auto kTheirPath = "SET LOCAL search_path TO DEFAULT";

// What was to be recorded is kept: whether it was, is asked afterwards.
SqlEnd failed(SqlFailure failure, SqlEnd end = {}) {
    end.failure = std::move(failure);
    return end;
}

milliseconds left(const Deadline& deadline) {
    return std::chrono::duration_cast<milliseconds>(deadline.left());
}

// Of an own attempt nothing but success can be recorded with the effect.
bool keeps_effect(const Outcome& outcome, bool own) {
    if (std::holds_alternative<Succeeded>(outcome)) return true;
    return !own &&
           (std::holds_alternative<Accepted>(outcome) || std::holds_alternative<Unknown>(outcome));
}

Parameters attempt_parameters(const OwnAttempt& own) {
    return {
        std::to_string(own.seq.value),
        std::to_string(own.epoch.value),
        std::to_string(own.leased_at.time_since_epoch().count())
    };
}

// What the server said, without libpq's decoration.
SqlFailure refused_by_server(const std::exception& error) {
    try {
        rethrow_as_store_error(error, During::read);
    } catch (const SqlError& sql) {
        return {When::rolled_back, sql.sqlstate(), sql.message()};
    } catch (const StoreError& store) {
        return {When::rolled_back, sqlstate_of(error), store.what()};
    }
}

// One run of a statement on one connection, from BEGIN to COMMIT; lives on the lane's thread.
class Run {
 public:
    Run(Session& session, const SqlCall& call, Failpoints* failpoints)
        : session_(session), call_(call), failpoints_(failpoints) {}

    SqlEnd perform(const JudgeRows& judge, const OwnAttempt* own) {
        return guarded([&](pqxx::dbtransaction& transaction, SqlEnd& end) {
            std::optional<Transition> next;
            if (own != nullptr && !take_hold(transaction, *own, end)) return false;
            end.rows = statement(transaction);
            end.outcome = judge(end.rows);
            hit(FailpointId::after_sql_effect);
            if (!keeps_effect(end.outcome, own != nullptr)) return false;
            if (own != nullptr) {
                next = own->decide(end.outcome);
                if (!record(transaction, *next, end)) return false;
                transaction.exec(kTheirPath);  // deferred triggers of theirs run at the commit
                hit(FailpointId::after_sql_record);
                end.written = std::move(next);
            }
            return true;
        });
    }

    SqlEnd look_up() {
        return guarded([&](pqxx::dbtransaction& transaction, SqlEnd& end) {
            end.rows = statement(transaction);
            return false;  // nothing to keep
        });
    }

 private:
    void hit(FailpointId id) const {
        if (failpoints_ != nullptr) failpoints_->hit_blocking(id);
    }

    // `work` says whether to commit.
    template <class Work>
    SqlEnd guarded(Work work) {
        SqlEnd end;
        if (call_.deadline.passed()) {
            end.failure = not_begun("the time was up before the statement was sent");
            return end;
        }
        bool committing = false;
        try {
            hit(FailpointId::before_sql_effect);
            auto transaction = begin();
            if (!work(*transaction, end)) {
                transaction->abort();
                return end;
            }
            if (call_.deadline.passed()) {
                transaction->abort();
                return failed({When::rolled_back, "57014", "the time was up before the commit"});
            }
            committing = true;
            transaction->commit();
            hit(FailpointId::after_sql_commit);
            return end;
        } catch (const std::exception& error) {
            return failed(why(error, committing), std::move(end));
        }
    }

    // A server that answers a COMMIT with an error has rolled back; one that says nothing may have
    // done it.
    [[nodiscard]] SqlFailure why(const std::exception& error, bool committing) const {
        const auto state = sqlstate_of(error);
        const bool silent = state.empty() || state == "40003" || state.starts_with("08") ||
                            state.starts_with("57P");
        if (committing && silent) {
            return {When::in_doubt, {}, "the acknowledgement of the commit was lost"};
        }
        if (!session_.is_open() && silent) {
            return {When::rolled_back, "08000", "the connection broke before the commit"};
        }
        return refused_by_server(error);
    }

    std::unique_ptr<pqxx::dbtransaction> begin() {
        std::unique_ptr<pqxx::dbtransaction> transaction;
        if (call_.read_only) {
            transaction = std::make_unique<pqxx::read_transaction>(session_.connection());
        } else {
            transaction = std::make_unique<pqxx::work>(session_.connection());
        }
        const auto timeout = std::max(std::min(call_.statement_timeout, left(call_.deadline)), 1ms);
        execute(
            *transaction, sql::effect_settings, {std::to_string(timeout.count()) + "ms", kIdle}
        );
        return transaction;
    }

    bool take_hold(pqxx::dbtransaction& transaction, const OwnAttempt& own, SqlEnd& end) {
        const auto rows = execute(transaction, sql::lock_attempt, attempt_parameters(own));
        if (rows.empty() || !rows[0]["ours"].as<bool>()) {
            end.failure = {When::fenced, {}, "the lease was over before the statement was sent"};
            return false;
        }
        hit(FailpointId::after_sql_lock);
        return true;
    }

    // As its author tried it out: with the search_path that its role and its database have.
    SqlRows statement(pqxx::dbtransaction& transaction) const {
        transaction.exec(kTheirPath);
        return rows_of(execute(transaction, call_.statement, call_.parameters), call_.max_bytes);
    }

    // False: rolled back. The wording of a success never costs it: a row that cannot be stored is
    // recorded as its digest, like any completion.
    bool record(pqxx::dbtransaction& transaction, Transition& next, SqlEnd& end) {
        // Not pqxx::subtransaction: that of 6.4.5 sends no SAVEPOINT when its first statement has
        // parameters.
        transaction.exec(std::string(kOurPath) + "; SAVEPOINT record");
        try {
            const Transition* one = &next;
            const auto written =
                execute(transaction, sql::finish_operations, finish_parameters({&one, 1}));
            return ours(written, end);
        } catch (const std::exception& error) {
            const bool data = dynamic_cast<const StoreError*>(&error) != nullptr ||
                              kind_of(sqlstate_of(error)) == StoreError::Kind::data;
            if (!data || !session_.is_open()) throw;
            transaction.exec("ROLLBACK TO SAVEPOINT record");
            next = last_resort(next, error.what());
        }
        const Transition* one = &next;
        return ours(
            execute(transaction, sql::finish_operations, finish_parameters({&one, 1})), end
        );
    }

    static bool ours(const pqxx::result& written, SqlEnd& end) {
        if (!written.empty()) return true;
        end.failure = {When::fenced, {}, "the attempt was taken away"};
        return false;
    }

    Session& session_;
    const SqlCall& call_;
    Failpoints* failpoints_;
};

}  // namespace

SqlFailure not_begun(std::string message) {
    return {When::not_begun, {}, std::move(message)};
}

SqlEnd run_effect(
    Session& session,
    const SqlCall& call,
    const JudgeRows& judge,
    const OwnAttempt* own,
    Failpoints* failpoints
) {
    return Run(session, call, failpoints).perform(judge, own);
}

SqlEnd run_look_up(Session& session, const SqlCall& call, Failpoints* failpoints) {
    return Run(session, call, failpoints).look_up();
}

std::optional<bool> was_committed(Session& session, const OwnAttempt& own, const Transition& next) {
    try {
        pqxx::work transaction(session.connection());
        execute(transaction, sql::effect_settings, {"5s", kIdle});
        const auto held = execute(transaction, sql::lock_attempt, attempt_parameters(own));
        if (!held.empty() && held[0]["ours"].as<bool>()) return false;
        const Transition* one = &next;
        const auto fates = execute(transaction, sql::read_fates, fate_parameters({&one, 1}));
        return !fates.empty() && std::string_view(fates[0]["fate"].c_str()) == "applied";
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

}  // namespace outbox::pg
