#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "outbox/clock.hpp"
#include "outbox/json.hpp"
#include "outbox/outcome.hpp"
#include "outbox/tool.hpp"

namespace outbox {

// One statement for a database, its parameters as text: nothing of an operation is ever part of
// the statement.
struct SqlCall {
    std::string statement;                               // with $1, $2, …
    std::vector<std::optional<std::string>> parameters;  // empty: NULL
    std::chrono::milliseconds statement_timeout{};       // cut to what the deadline leaves
    Deadline deadline;
    std::size_t max_bytes = 0;  // of the rows as JSON text
    bool read_only = false;
};

struct SqlRows {
    int count = 0;  // rows returned; of a statement that returns none: rows affected
    Json rows = Json::Array{};
    bool truncated = false;  // the rows are more than max_bytes and left out
};

// Why there is no answer. In all cases but in_doubt the statement definitely had no effect.
struct SqlFailure {
    enum class When {
        not_begun,    // no connection, or the deadline passed: the statement was not sent
        rolled_back,  // the server refused it, or the connection broke before the commit was sent
        fenced,       // the attempt is not ours any more: somebody else moved the epoch
        in_doubt,     // the acknowledgement of the commit was lost
    };
    When when = When::rolled_back;
    std::string sqlstate;  // empty: the server did not say
    std::string message;
};

struct SqlEnd {
    std::optional<SqlFailure> failure;  // else the rest counts
    SqlRows rows;
    Outcome outcome;                    // what judge made of the rows
    std::optional<Transition> written;  // own attempts: committed together with the effect
};

// Judges the rows before the commit: succeeded, accepted and unknown are committed, everything
// else is rolled back. Called on another thread; must be pure.
using JudgeRows = std::function<Outcome(const SqlRows&)>;

// One database, reached over one connection on a thread of its own: calls run one after the other.
// Nothing is thrown for what the server did. Not cancellable: bounded by the call's deadline.
class SqlDatabase {
 public:
    virtual ~SqlDatabase() = default;

    // The statement in a transaction of its own. With an own attempt (on the outbox's database
    // only) a success is recorded in that transaction: fence, effect and record are one.
    virtual asio::awaitable<SqlEnd> perform(
        SqlCall call, JudgeRows judge, std::optional<OwnAttempt> own
    ) = 0;

    // The same for a question; nothing is judged.
    virtual asio::awaitable<SqlEnd> look_up(SqlCall call) = 0;
};

// Where databases come from; outlives what it opened.
class SqlDatabases {
 public:
    virtual ~SqlDatabases() = default;
    // Empty: the outbox's own database. Connects with the first call.
    virtual std::unique_ptr<SqlDatabase> open(const std::optional<std::string>& dsn) = 0;
};

}  // namespace outbox
