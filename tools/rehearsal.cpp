#include "tools/rehearsal.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <utility>

#include "config/without_secrets.hpp"
#include "outbox/decide.hpp"
#include "outbox/provider_key.hpp"
#include "tools/compiled_tool.hpp"
#include "tools/log_tool.hpp"
#include "tools/mcp_http.hpp"
#include "tools/rehearsal_script.hpp"
#include "tools/rehearsal_sql.hpp"

namespace tools {
namespace {

using namespace std::chrono_literals;

class ScriptSender final : public HttpSender {
 public:
    ScriptSender(Script& script, const RequestCredential& credential)
        : script_(script), wants_token_(credential.wants_token()) {}
    asio::awaitable<HttpResult> send(HttpRequest request, outbox::Deadline) override {
        // What is put on only when it is really sent, and what changes with every second.
        if (wants_token_) request.headers.emplace_back("Authorization", "Bearer ***");
        for (auto& [name, value] : request.headers) {
            if (name == "webhook-signature") value = "v1,***";
        }
        script_.sent.emplace_back(std::move(request));
        co_return script_.next(HttpResult{HttpFailure{
            .sent = true,
            .cause = outbox::Cause::timeout,
            .error = {.code = "timeout", .message = "no more answers were given"}
        }});
    }

 private:
    Script& script_;
    bool wants_token_;
};

ProcessEnd run(Script& script, ProcessSpec spec) {
    script.sent.emplace_back(std::move(spec));
    ProcessEnd nobody;
    nobody.how = ProcessEnd::How::timed_out;
    return script.next(std::move(nobody));
}

// CommandAction and CommandProbe but for the process.
class ScriptCommand final : public Action {
 public:
    ScriptCommand(CommandExecute execute, Script& script)
        : execute_(std::move(execute)), script_(script) {}
    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall call, outbox::Deadline) override {
        const Scope scope{call};
        if (auto error = execute_.outcomes.check(scope))
            co_return outbox::refused(std::move(*error));
        auto spec = execute_.command.render(scope);
        if (!spec.ok()) co_return outbox::refused(spec.error());
        co_return judge(execute_, run(script_, std::move(spec.value())), scope);
    }

 private:
    CommandExecute execute_;
    Script& script_;
};

class ScriptCommandProbe final : public Probe {
 public:
    ScriptCommandProbe(CommandLookup lookup, Script& script)
        : lookup_(std::move(lookup)), script_(script) {}
    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline) override {
        const Scope scope{call};
        if (auto error = lookup_.verdicts.check(scope))
            co_return outbox::Inconclusive{std::move(*error)};
        auto spec = lookup_.command.render(scope);
        if (!spec.ok()) co_return outbox::Inconclusive{spec.error()};
        co_return judge(lookup_, run(script_, std::move(spec.value())), scope);
    }

 private:
    CommandLookup lookup_;
    Script& script_;
};

// The call as the current revision writes it, to a server that is not there.
class ScriptMcp final : public McpServer {
 public:
    ScriptMcp(Script& script, const McpTemplate& call) : script_(script) {
        if (call.server() != nullptr) credential_ = call.server()->credential();
    }
    asio::awaitable<McpEnd> call(McpCall call, const Scope& scope, outbox::Deadline) override {
        if (std::holds_alternative<HttpRequest>(call.to)) {
            auto request = shown_request(call, credential_, scope);
            if (credential_.wants_token()) {
                request.headers.emplace_back("Authorization", "Bearer ***");
            }
            script_.sent.emplace_back(std::move(request));
        } else {
            auto spec = std::get<ProcessSpec>(call.to);
            spec.input = call_message(1, call, {std::string(kModernMcp), true, {}}) + "\n";
            script_.sent.emplace_back(std::move(spec));
        }
        co_return script_.next(lost(outbox::Cause::timeout, "timeout", "no more answers were given")
        );
    }

 private:
    Script& script_;
    RequestCredential credential_;
};

class ScriptLog final : public Action {
 public:
    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall, outbox::Deadline) override {
        co_return outbox::Succeeded{};
    }
};

std::unique_ptr<Action> make_action(CompiledTool& tool, Script& script) {
    if (auto* http = std::get_if<HttpExecute>(&tool.execute)) {
        auto sender = std::make_shared<ScriptSender>(script, http->request.credential());
        return std::make_unique<HttpAction>(std::move(*http), std::move(sender));
    }
    if (auto* command = std::get_if<CommandExecute>(&tool.execute)) {
        return std::make_unique<ScriptCommand>(std::move(*command), script);
    }
    if (auto* mcp = std::get_if<McpExecute>(&tool.execute)) {
        auto server = std::make_shared<ScriptMcp>(script, mcp->call);
        return std::make_unique<McpAction>(
            std::make_shared<const McpExecute>(std::move(*mcp)),
            std::move(server),
            script.failpoints
        );
    }
    if (auto* sql = std::get_if<SqlExecute>(&tool.execute)) {
        return std::make_unique<ScriptSql>(std::move(*sql), script);
    }
    return std::make_unique<ScriptLog>();
}

std::unique_ptr<Probe> make_probe(CompiledTool& tool, Script& script) {
    if (tool.policy.own_transaction)
        return std::make_unique<NoProbe>("effect and record are one transaction: nobody is asked");
    if (!tool.lookup)
        return std::make_unique<NoProbe>("only a person can tell whether it happened");
    if (auto* http = std::get_if<HttpLookup>(&*tool.lookup)) {
        auto sender = std::make_shared<ScriptSender>(script, http->request.credential());
        return std::make_unique<HttpProbe>(std::move(*http), std::move(sender));
    }
    if (auto* command = std::get_if<CommandLookup>(&*tool.lookup)) {
        return std::make_unique<ScriptCommandProbe>(std::move(*command), script);
    }
    if (auto* mcp = std::get_if<McpLookup>(&*tool.lookup)) {
        auto server = std::make_shared<ScriptMcp>(script, mcp->call);
        return std::make_unique<McpProbe>(std::move(*mcp), std::move(server));
    }
    return std::make_unique<ScriptSqlProbe>(std::move(std::get<SqlLookup>(*tool.lookup)), script);
}

template <class Http, class Command, class Sql, class Mcp, class Variant>
Rehearsal::Kind kind_of(const Variant& action) {
    if (std::holds_alternative<Mcp>(action)) return Rehearsal::Kind::mcp;
    if (std::holds_alternative<Http>(action)) return Rehearsal::Kind::http;
    if (std::holds_alternative<Command>(action)) return Rehearsal::Kind::command;
    if (std::holds_alternative<Sql>(action)) return Rehearsal::Kind::sql;
    return Rehearsal::Kind::none;
}

// Nothing in it waits for anything: it ends in one go.
template <class T>
T run(asio::awaitable<T> task) {
    asio::io_context io;
    std::exception_ptr error;
    std::optional<T> result;
    asio::co_spawn(io, std::move(task), [&](std::exception_ptr e, T value) {
        error = std::move(e);
        result = std::move(value);
    });
    io.run();
    if (error) std::rethrow_exception(error);
    return std::move(*result);
}

outbox::Error nothing_sent(std::string message) {
    return {.code = "nothing_sent", .message = std::move(message)};
}

}  // namespace

struct Rehearsal::Stage {
    Script script;
    std::unique_ptr<AdapterTool> tool;
    outbox::KeySettings key;
    std::string key_namespace;
    bool write = true;
    bool resend = false;  // a look-up is the request itself
    Kind execute = Kind::none;
    Kind lookup = Kind::none;
};

Rehearsal::Rehearsal(std::unique_ptr<Stage> stage) : stage_(std::move(stage)) {}
Rehearsal::~Rehearsal() = default;
Rehearsal::Rehearsal(Rehearsal&&) noexcept = default;
Rehearsal& Rehearsal::operator=(Rehearsal&&) noexcept = default;

std::optional<Rehearsal> Rehearsal::of(
    const config::Config& config, const std::string& name, std::string& why
) {
    const auto shown = config::without_secrets(config);
    for (const auto& tool : shown.tools) {
        if (tool.name != name) continue;
        config::Diagnostics diagnostics;
        auto compiled = compile_tool(tool, shown, diagnostics);
        if (!compiled || diagnostics.has_errors()) {
            why = name + " cannot be compiled";
            for (const auto& d : diagnostics.all()) {
                if (d.severity == config::Severity::error) why = d.message;
            }
            return std::nullopt;
        }
        auto stage = std::make_unique<Stage>();
        stage->key = compiled->policy.key;
        stage->key_namespace = config.database.key_namespace;
        stage->write = tool.write;
        stage->execute =
            kind_of<HttpExecute, CommandExecute, SqlExecute, McpExecute>(compiled->execute);
        if (compiled->lookup) {
            stage->lookup =
                kind_of<HttpLookup, CommandLookup, SqlLookup, McpLookup>(*compiled->lookup);
        }
        stage->resend = compiled->policy.reconcile.resend;
        if (stage->resend) stage->lookup = stage->execute;
        auto action = make_action(*compiled, stage->script);
        auto probe = make_probe(*compiled, stage->script);
        stage->tool = std::make_unique<AdapterTool>(
            std::move(action),
            std::move(probe),
            std::make_shared<const SecretMask>(std::map<std::string, config::Credential>{}),
            std::move(compiled->arguments)
        );
        return Rehearsal(std::move(stage));
    }
    why = "there is no tool " + name;
    return std::nullopt;
}

std::string Rehearsal::key_of(const std::string& operation_id) const {
    return outbox::provider_key(
        stage_->key_namespace, outbox::OperationId(operation_id), stage_->key
    );
}

bool Rehearsal::write() const {
    return stage_->write;
}

Rehearsal::Kind Rehearsal::execute_kind() const {
    return stage_->execute;
}

Rehearsal::Kind Rehearsal::lookup_kind() const {
    return stage_->lookup;
}

std::size_t Rehearsal::unread() const {
    return stage_->script.answers.size();
}

Rendered<SentRequest> Rehearsal::request(const outbox::ToolCall& call) {
    auto& script = stage_->script;
    script.answers.clear();
    script.sent.clear();
    const auto outcome = run(stage_->tool->execute(call, outbox::Deadline::after(1h)));
    if (!script.sent.empty()) return std::move(script.sent.front());
    if (const auto* rejected = std::get_if<outbox::Rejected>(&outcome)) return rejected->error;
    return nothing_sent("nothing leaves the process: the tool writes a line to the log");
}

Rendered<SentRequest> Rehearsal::lookup(const outbox::ToolCall& call) {
    if (stage_->resend) return request(call);
    auto& script = stage_->script;
    script.answers.clear();
    script.sent.clear();
    const auto verdict = run(stage_->tool->probe(call, outbox::Deadline::after(1h)));
    if (!script.sent.empty()) return std::move(script.sent.front());
    if (const auto* failed = std::get_if<outbox::Inconclusive>(&verdict)) return failed->error;
    return nothing_sent("nothing is asked");
}

outbox::Outcome Rehearsal::outcome(const outbox::ToolCall& call, Canned answer) {
    auto& script = stage_->script;
    script.sent.clear();
    script.answers.clear();
    script.answers.push_back(std::move(answer));
    return run(stage_->tool->execute(call, outbox::Deadline::after(1h)));
}

outbox::Verdict Rehearsal::verdict(const outbox::ToolCall& call, std::vector<Canned> pages) {
    auto& script = stage_->script;
    script.sent.clear();
    script.answers.assign(
        std::make_move_iterator(pages.begin()), std::make_move_iterator(pages.end())
    );
    if (stage_->resend) {
        return outbox::resend_verdict(run(stage_->tool->execute(call, outbox::Deadline::after(1h)))
        );
    }
    return run(stage_->tool->probe(call, outbox::Deadline::after(1h)));
}

}  // namespace tools
