#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "tools/compiled_tool.hpp"
#include "tools/rehearsal_script.hpp"

// A rehearsal's stand-ins for a tool of type sql: its statements are shown, and nothing is
// executed.
namespace tools {

// A statement to be shown, with the operation that it is for just now.
struct Shown {
    SqlTemplate sql;
    const Scope* scope = nullptr;
};

// The database: it answers what the script says, after the judge of the tool itself.
class ScriptDatabase final : public outbox::SqlDatabase {
 public:
    ScriptDatabase(Script& script, std::shared_ptr<const Shown> shown)
        : script_(script), shown_(std::move(shown)) {}
    asio::awaitable<outbox::SqlEnd>
    perform(outbox::SqlCall, outbox::JudgeRows judge, std::optional<outbox::OwnAttempt>) override {
        auto end = answer();
        if (!end.failure) end.outcome = judge(end.rows);
        co_return end;
    }
    asio::awaitable<outbox::SqlEnd> look_up(outbox::SqlCall) override { co_return answer(); }

 private:
    outbox::SqlEnd answer() {
        if (auto shown = shown_->sql.show(*shown_->scope); shown.ok()) {
            script_.sent.emplace_back(std::move(shown.value()));
        }
        outbox::SqlEnd nobody;
        nobody.failure = outbox::SqlFailure{
            .when = outbox::SqlFailure::When::in_doubt,
            .sqlstate = {},
            .message = "no more answers were given"
        };
        return script_.next(std::move(nobody));
    }

    Script& script_;
    std::shared_ptr<const Shown> shown_;
};

// The tool's own way with a statement, over the script's database.
template <class Doer>
struct Rehearsed {
    template <class Rules>
    Rehearsed(Rules rules, Script& script)
        : shown(std::make_shared<Shown>(Shown{rules.sql})),
          doer(std::move(rules), std::make_unique<ScriptDatabase>(script, shown)) {}
    // The one that does it, while the scope lives.
    Doer& of(const Scope& scope) {
        shown->scope = &scope;
        return doer;
    }
    std::shared_ptr<Shown> shown;
    Doer doer;
};

class ScriptSql final : public Action {
 public:
    ScriptSql(SqlExecute execute, Script& script) : sql_(std::move(execute), script) {}
    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall call, outbox::Deadline deadline)
        override {
        const Scope scope{call};
        auto performing = sql_.of(scope).perform(call, deadline);
        co_return co_await std::move(performing);
    }

 private:
    Rehearsed<SqlAction> sql_;
};

class ScriptSqlProbe final : public Probe {
 public:
    ScriptSqlProbe(SqlLookup lookup, Script& script) : sql_(std::move(lookup), script) {}
    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline deadline)
        override {
        const Scope scope{call};
        auto asking = sql_.of(scope).ask(call, deadline);
        co_return co_await std::move(asking);
    }

 private:
    Rehearsed<SqlProbe> sql_;
};

}  // namespace tools
