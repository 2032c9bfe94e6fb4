#include "tools/sql_tool.hpp"

#include <array>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <string_view>

#include "outbox/overloaded.hpp"

namespace tools {
namespace {

using outbox::Cause;
using outbox::Error;
using outbox::Json;
using outbox::Outcome;
using outbox::SqlFailure;
using When = outbox::SqlFailure::When;

// Classes and states that may be gone the next time; everything else stays as it is.
bool passes(std::string_view state) {
    constexpr std::array<std::string_view, 9> kPassing = {
        "40",     // serialization failure, deadlock
        "55P03",  // a lock was not to be had in time
        "57",     // cancelled (statement_timeout), shutting down, starting up
        "25P03",  // idle in transaction for too long
        "25006",  // read-only: a failover under way
        "08",     // connection
        "53",     // out of memory, disk or connections
        "58",     // errors of the server's system
        "XX",     // errors of the server itself
    };
    for (const auto prefix : kPassing) {
        if (state.starts_with(prefix)) return true;
    }
    return state.empty();
}

Error described(const SqlFailure& failure) {
    Error error;
    error.code = failure.sqlstate.empty() ? "sql" : "sql_" + failure.sqlstate;
    error.message = failure.message;
    if (failure.sqlstate == "42501") {
        error.message +=
            "; the statement runs as the role of its dsn (without one: the daemon's own), which "
            "needs a GRANT for it";
    }
    return error;
}

outbox::RetryLater later(Error error, bool counts) {
    outbox::RetryLater out;
    out.error = std::move(error);
    out.counts = counts;
    return out;
}

Answer to_answer(const outbox::SqlRows& rows) {
    Answer answer;
    answer.rows = rows.count;
    answer.truncated = rows.truncated;
    answer.body = rows.rows;
    return answer;
}

std::optional<std::string> as_parameter(const std::optional<Json>& value) {
    if (!value || value->is_null()) return std::nullopt;
    if (const auto* text = value->as_string()) return *text;
    return outbox::to_text(*value);
}

// On the own database a rule can only end in what the transaction is able to keep: rolled back is
// a definite "no effect", also after an attempt that nobody saw the end of.
Outcome as_own(Outcome outcome) {
    return std::visit(
        outbox::Overloaded{
            [](outbox::Succeeded& o) -> Outcome { return std::move(o); },
            [](outbox::RetryLater& o) -> Outcome { return std::move(o); },
            [](outbox::Rejected& o) -> Outcome {
                o.proves_absence = true;
                return std::move(o);
            },
            [](outbox::Accepted&) -> Outcome {
                return outbox::Rejected{{"accepted", "the statement was rolled back"}, true};
            },
            [](auto& o) -> Outcome { return outbox::Rejected{std::move(o.error), true}; },
        },
        outcome
    );
}

}  // namespace

SqlTemplate SqlTemplate::compile(const config::Sql& sql, CompileContext& context) {
    SqlTemplate out;
    if (sql.dsn) out.dsn = sql.dsn->value;
    out.written_ = sql.statement.value;
    out.statement_ = sql.numbered;
    out.statement_timeout_ = sql.statement_timeout;
    for (const auto& [name, value] : sql.parameters) {
        out.parameters_.emplace_back(name.value, ValueTemplate::compile(value, context));
    }
    return out;
}

Rendered<outbox::SqlCall> SqlTemplate::render(const Scope& scope, outbox::Deadline deadline) const {
    outbox::SqlCall call;
    call.statement = statement_;
    call.deadline = deadline;
    call.max_bytes = max_bytes;
    call.statement_timeout = statement_timeout_.value_or(std::chrono::hours{24});
    for (const auto& [name, value] : parameters_) {
        auto rendered = value.render(scope);
        if (!rendered.ok()) return rendered.error();
        auto text = as_parameter(rendered.value());
        if (text && text->find('\0') != std::string::npos) {
            return invalid_argument("the parameter " + name + " would hold a NUL");
        }
        call.parameters.push_back(std::move(text));
    }
    return call;
}

Rendered<SentStatement> SqlTemplate::show(const Scope& scope) const {
    SentStatement out;
    out.statement = written_;
    out.own = !dsn;
    for (const auto& [name, value] : parameters_) {
        auto rendered = value.render(scope);
        if (!rendered.ok()) return rendered.error();
        out.parameters.emplace_back(name, rendered.value() ? *rendered.value() : Json{});
    }
    return out;
}

SqlExecute SqlExecute::compile(
    const config::Sql& sql, const config::Tool& tool, CompileContext& context
) {
    SqlExecute out;
    out.sql = SqlTemplate::compile(sql, context);
    out.outcomes = OutcomeRules::compile(sql.rules, AnswerKind::sql, sql.result, context);
    out.has_outcomes = sql.has_rules;
    out.own = tool.own_transaction();
    out.read_only = !tool.write;
    return out;
}

SqlLookup SqlLookup::compile(const config::Sql& sql, CompileContext& context) {
    return {
        SqlTemplate::compile(sql, context),
        VerdictRules::compile(sql.rules, AnswerKind::sql, sql.result, context)
    };
}

Outcome judge(const SqlExecute& execute, const outbox::SqlRows& rows, const Scope& scope) {
    auto answer = to_answer(rows);
    auto outcome = execute.outcomes.match(answer, scope);
    if (!outcome && !execute.has_outcomes) outcome = outbox::Succeeded{std::move(*answer.body), {}};
    if (!outcome) {
        outcome = outbox::Rejected{
            {"no_outcome",
             "no outcome describes " + std::to_string(rows.count) +
                 " rows: the statement was rolled back"},
            true
        };
    }
    return execute.own ? as_own(std::move(*outcome)) : std::move(*outcome);
}

Outcome judge(const SqlExecute& execute, const SqlFailure& failure) {
    switch (failure.when) {
        case When::not_begun:
            return later({"not_sent", failure.message}, false);
        case When::fenced:
            return later({"fenced", failure.message}, false);
        case When::in_doubt:
            // On the own database the write of this very outcome tells: under the same epoch it
            // finds the row only when the transaction did not commit.
            if (execute.own) return later({"commit_in_doubt", failure.message}, true);
            return outbox::Unknown{Cause::reset, {"commit_in_doubt", failure.message}};
        case When::rolled_back:
            break;
    }
    if (passes(failure.sqlstate)) return later(described(failure), true);
    return outbox::Rejected{described(failure), true};
}

outbox::Verdict judge(const SqlLookup& lookup, const outbox::SqlEnd& end, const Scope& scope) {
    if (end.failure) return outbox::Inconclusive{described(*end.failure)};
    if (auto verdict = lookup.verdicts.match(to_answer(end.rows), scope)) {
        return std::move(*verdict);
    }
    return outbox::Inconclusive{
        {"no_verdict", "no verdict describes " + std::to_string(end.rows.count) + " rows"}
    };
}

asio::awaitable<Outcome> SqlAction::perform(outbox::ToolCall call, outbox::Deadline deadline) {
    // What was committed must be told: nothing here may be cut short.
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    const Scope scope{call};
    if (auto error = execute_.outcomes.check(scope)) co_return outbox::refused(std::move(*error));
    auto rendered = execute_.sql.render(scope, deadline);
    if (!rendered.ok()) co_return outbox::refused(rendered.error());
    auto& statement = rendered.value();
    statement.read_only = execute_.read_only;
    outbox::JudgeRows judging = [this, &scope](const outbox::SqlRows& rows) {
        return judge(execute_, rows, scope);
    };
    std::optional<outbox::OwnAttempt> own;
    if (execute_.own) own = call.own;
    auto running = database_->perform(std::move(statement), std::move(judging), std::move(own));
    auto end = co_await std::move(running);
    if (end.failure) co_return judge(execute_, *end.failure);
    if (end.written && call.written != nullptr) *call.written = std::move(end.written);
    co_return std::move(end.outcome);
}

asio::awaitable<outbox::Verdict> SqlProbe::ask(outbox::ToolCall call, outbox::Deadline deadline) {
    const Scope scope{call};
    if (auto error = lookup_.verdicts.check(scope)) {
        co_return outbox::Inconclusive{std::move(*error)};
    }
    auto rendered = lookup_.sql.render(scope, deadline);
    if (!rendered.ok()) co_return outbox::Inconclusive{rendered.error()};
    rendered.value().read_only = true;
    auto asking = database_->look_up(std::move(rendered.value()));
    const auto end = co_await std::move(asking);
    co_return judge(lookup_, end, scope);
}

asio::awaitable<outbox::Verdict> OwnTransactionProbe::ask(outbox::ToolCall, outbox::Deadline) {
    co_return outbox::Absent{};
}

}  // namespace tools
