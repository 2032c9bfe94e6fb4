#include "tools/config_test_answer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <string_view>

#include "config/units.hpp"
#include "outbox/overloaded.hpp"
#include "tools/value_template.hpp"

namespace tools {
namespace {

using outbox::Json;
using How = ProcessEnd::How;

std::string worded(std::string_view end, const Json& result) {
    return fmt::format("{}, result {}", end, outbox::to_text(result));
}
std::string worded(std::string_view end, const outbox::Error& error) {
    return fmt::format("{}, code {}: {}", end, error.code, error.message);
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

HttpResult http_answer(const config::CannedAnswer& canned) {
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

ProcessEnd command_answer(const config::CannedAnswer& canned) {
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

outbox::SqlEnd sql_answer(const config::CannedAnswer& canned) {
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

}  // namespace tools
