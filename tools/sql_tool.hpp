#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "outbox/sql_database.hpp"
#include "tools/adapter.hpp"
#include "tools/rules.hpp"
#include "tools/sent_request.hpp"
#include "tools/value_template.hpp"

namespace tools {

// A statement of the configuration with its parameters compiled. They travel as text beside the
// statement, never in it.
class SqlTemplate {
 public:
    static SqlTemplate compile(const config::Sql& sql, CompileContext& context);

    // Numbers and booleans as they are written in SQL, null and missing optional values as NULL,
    // arrays and objects as JSON text. Refuses NUL, which Postgres cannot take.
    [[nodiscard]] Rendered<outbox::SqlCall> render(const Scope& scope, outbox::Deadline deadline)
        const;

    // The same for reading: the statement as the file has it, its values by name. What render()
    // refuses is refused here.
    [[nodiscard]] Rendered<SentStatement> show(const Scope& scope) const;

    std::optional<std::string> dsn;  // empty: the outbox's own database
    std::size_t max_bytes = 0;       // of the rows as JSON

 private:
    std::string written_;    // as the file has it
    std::string statement_;  // numbered
    std::vector<std::pair<std::string, ValueTemplate>> parameters_;
    std::optional<std::chrono::milliseconds> statement_timeout_;
};

// execute: { type: sql }, compiled.
struct SqlExecute {
    SqlTemplate sql;
    OutcomeRules outcomes;
    bool has_outcomes = false;
    bool own = false;  // success is recorded in the transaction of the effect
    bool read_only = false;

    static SqlExecute compile(
        const config::Sql& sql, const config::Tool& tool, CompileContext& context
    );
};

// reconcile: { type: sql }, compiled.
struct SqlLookup {
    SqlTemplate sql;
    VerdictRules verdicts;

    static SqlLookup compile(const config::Sql& sql, CompileContext& context);
};

// Before the commit: what no rule describes is rolled back, so it is a definite "no effect".
[[nodiscard]] outbox::Outcome judge(
    const SqlExecute& execute, const outbox::SqlRows& rows, const Scope& scope
);
[[nodiscard]] outbox::Outcome judge(const SqlExecute& execute, const outbox::SqlFailure& failure);
[[nodiscard]] outbox::Verdict judge(
    const SqlLookup& lookup, const outbox::SqlEnd& end, const Scope& scope
);

// An effect by one statement in one transaction.
class SqlAction final : public Action {
 public:
    SqlAction(SqlExecute execute, std::unique_ptr<outbox::SqlDatabase> database)
        : execute_(std::move(execute)), database_(std::move(database)) {}

    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall call, outbox::Deadline deadline)
        override;

 private:
    SqlExecute execute_;
    std::unique_ptr<outbox::SqlDatabase> database_;
};

// Asks by one statement in a read-only transaction.
class SqlProbe final : public Probe {
 public:
    SqlProbe(SqlLookup lookup, std::unique_ptr<outbox::SqlDatabase> database)
        : lookup_(std::move(lookup)), database_(std::move(database)) {}

    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline deadline) override;

 private:
    SqlLookup lookup_;
    std::unique_ptr<outbox::SqlDatabase> database_;
};

// Of a tool on the outbox's own database. Whoever is asked has claimed the operation, which moved
// its epoch: a transaction of an earlier attempt cannot commit any more, and one that had would
// have ended the operation. So there was no effect.
class OwnTransactionProbe final : public Probe {
 public:
    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline deadline) override;
};

}  // namespace tools
