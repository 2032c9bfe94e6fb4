#include "tools/config_test_answer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "config/units.hpp"
#include "outbox/overloaded.hpp"
#include "tools/http_tool.hpp"
#include "tools/json_rpc.hpp"
#include "tools/value_template.hpp"

namespace tools {
namespace {

using outbox::Json;
using How = ProcessEnd::How;
using Kind = Rehearsal::Kind;

std::string worded(std::string_view end, const Json& result) {
    return fmt::format("{}, result {}", end, outbox::to_text(result));
}
std::string worded(std::string_view end, const outbox::Error& error) {
    return fmt::format("{}, code {}: {}", end, error.code, error.message);
}

bool fits(const config::CannedAnswer& answer, Kind kind) {
    const bool mcp = answer.rpc_error || answer.is_error || answer.result_type;
    const bool sql = answer.rows || answer.affected || !answer.sqlstate.empty();
    switch (kind) {
        case Kind::http:
            return !mcp && !sql && !answer.exit_code && answer.fails != "killed";
        case Kind::command:
            return !mcp && !sql && !answer.status && answer.fails != "reset";
        case Kind::sql:
            return !mcp && !answer.status && !answer.exit_code && answer.fails != "killed" &&
                   !answer.body && !answer.text && answer.headers.empty();
        case Kind::mcp:
            return !sql && !answer.exit_code;
        case Kind::none:
            break;
    }
    return false;
}

}  // namespace

std::string Carried::text() const {
    std::string out = end;
    if (result != nullptr) out = worded(end, *result);
    if (error != nullptr) out = worded(end, *error);
    if (after) out += fmt::format(", after {}", config::duration_text(*after));
    if (!note.empty()) out += " (" + note + ")";
    return out;
}

Carried carried(const outbox::Outcome& outcome, bool write) {
    Carried out{std::string(outbox::outcome_name(outcome))};
    if (!write && out.end == "unknown") out.end = "retry";
    std::visit(
        outbox::Overloaded{
            [&](const outbox::Succeeded& o) {
                out.result = &o.result;
                out.note = o.note;
            },
            [&](const outbox::Accepted& o) { out.result = &o.result; },
            [&](const outbox::RetryLater& o) {
                out.error = &o.error;
                out.after = o.after;
            },
            [&](const auto& o) { out.error = &o.error; },
        },
        outcome
    );
    return out;
}

Carried carried(const outbox::Verdict& verdict) {
    Carried out{std::string(outbox::verdict_name(verdict))};
    std::visit(
        outbox::Overloaded{
            [&](const outbox::Found& v) {
                out.result = &v.result;
                out.note = v.note;
            },
            [](const outbox::Absent&) {},
            [&](const outbox::Pending& v) { out.note = v.note; },
            [&](const auto& v) { out.error = &v.error; },
        },
        verdict
    );
    return out;
}

static HttpResult http_answer(const config::CannedAnswer& canned) {
    if (canned.fails) {
        const bool sent = *canned.fails != "not_sent";
        return HttpFailure{
            .sent = sent,
            .cause = *canned.fails == "reset" ? outbox::Cause::reset : outbox::Cause::timeout,
            .error =
                {.code = sent ? *canned.fails : "not_sent_connect", .message = "as the test says"}
        };
    }
    HttpResponse response;
    response.status = *canned.status;
    for (const auto& [name, value] : canned.headers) {
        response.headers.emplace_back(name.value, value.value);
    }
    if (canned.body) response.body = plain_json_text(*canned.body);
    if (canned.text) response.body = canned.text->value;
    return response;
}

static ProcessEnd command_answer(const config::CannedAnswer& canned) {
    ProcessEnd end;
    if (canned.fails == "not_sent") {
        end.code = ENOENT;
    } else if (canned.fails == "killed") {
        end.how = How::signalled;
        end.code = SIGKILL;
    } else if (canned.fails) {
        end.how = How::timed_out;
    } else {
        end.how = How::exited;
        end.code = *canned.exit_code;
    }
    if (canned.body) end.output = plain_json_text(*canned.body);
    if (canned.text) end.output = canned.text->value;
    if (canned.stderr_text) end.errors = canned.stderr_text->value;
    return end;
}

static McpEnd mcp_answer(const config::CannedAnswer& canned) {
    if (canned.fails == "not_sent") return not_called("not_sent_connect", "as the test says");
    if (canned.fails) {
        const bool reset = *canned.fails == "reset";
        return lost(
            reset                       ? outbox::Cause::reset
            : *canned.fails == "killed" ? outbox::Cause::killed
                                        : outbox::Cause::timeout,
            *canned.fails,
            "as the test says"
        );
    }
    McpEnd end;
    if (canned.status) {
        end.what = to_answer(std::get<HttpResponse>(http_answer(canned)));
        return end;
    }
    RpcMessage message;
    if (canned.body) {
        auto body = outbox::parse_json(plain_json_text(*canned.body));
        if (body.value) message.body = std::move(*body.value);
    }
    if (canned.rpc_error) {
        message.kind = RpcMessage::Kind::error;
        message.code = *canned.rpc_error;
        message.body.set("code", Json(*canned.rpc_error));
        if (canned.text) message.body.set("message", Json(canned.text->value));
    } else {
        message.kind = RpcMessage::Kind::result;
        if (canned.result_type) message.body.set("resultType", Json(*canned.result_type));
        if (canned.is_error) message.body.set("isError", Json(*canned.is_error));
        Json::Array content;
        if (canned.text) {
            Json text;
            text.set("type", Json("text"));
            text.set("text", Json(canned.text->value));
            content.push_back(std::move(text));
        }
        if (canned.is_error && message.body.find("content") == nullptr) {
            message.body.set("content", Json(std::move(content)));
        }
    }
    end.what = to_answer(message);
    return end;
}

static outbox::SqlEnd sql_answer(const config::CannedAnswer& canned) {
    using Failure = outbox::SqlFailure;
    outbox::SqlEnd end;
    if (canned.fails == "not_sent") {
        end.failure = Failure{Failure::When::not_begun, {}, "no connection"};
    } else if (canned.fails == "timeout") {
        end.failure = Failure{Failure::When::rolled_back, "57014", "cancelled: statement timeout"};
    } else if (canned.fails) {  // reset: while it was being committed
        end.failure = Failure{Failure::When::in_doubt, {}, "the connection was lost"};
    } else if (!canned.sqlstate.empty()) {
        end.failure = Failure{Failure::When::rolled_back, canned.sqlstate, "refused"};
    } else if (canned.affected) {
        end.rows.count = *canned.affected;
    } else {
        end.rows.count = static_cast<int>(canned.rows->items.size());
        auto rows = outbox::parse_json(plain_json_text(*canned.rows));
        if (rows.value) end.rows.rows = std::move(*rows.value);
    }
    return end;
}

const char* answers_of(Kind kind) {
    switch (kind) {
        case Kind::http:
            return "an HTTP answer: status, or fails: not_sent, timeout, reset";
        case Kind::command:
            return "the end of a command: exit_code, or fails: not_sent, timeout, killed";
        case Kind::sql:
            return "the end of a statement: rows, affected, sqlstate, or fails: not_sent, "
                   "timeout, reset";
        case Kind::mcp:
            return "an answer of an MCP server: is_error, rpc_error, result_type, status, or fails";
        case Kind::none:
            break;
    }
    return "no answer: nobody is asked";
}

std::optional<Rehearsal::Canned> canned_answer(const config::CannedAnswer& canned, Kind kind) {
    if (!fits(canned, kind)) return std::nullopt;
    if (kind == Kind::mcp) return mcp_answer(canned);
    if (kind == Kind::http) return http_answer(canned);
    if (kind == Kind::sql) return sql_answer(canned);
    return command_answer(canned);
}

}  // namespace tools
