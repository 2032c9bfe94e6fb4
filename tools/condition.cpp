#include "tools/condition.hpp"

#include "config/nearest.hpp"

namespace tools {
namespace {

using outbox::Json;
using ValueKind = config::Value::Kind;

std::vector<std::string> known_members(AnswerKind kind) {
    if (kind == AnswerKind::command) return {"exit_code", "body", "text"};
    if (kind == AnswerKind::sql) return {"rows", "body"};
    if (kind == AnswerKind::mcp) {
        return {"is_error", "rpc_error", "result_type", "status", "header", "body", "text"};
    }
    return {"status", "header", "body", "text"};
}

const char* example(AnswerKind kind) {
    switch (kind) {
        case AnswerKind::http:
            return "for instance { status: 201 }";
        case AnswerKind::command:
            return "for instance { exit_code: 0 }";
        case AnswerKind::sql:
            return "for instance { rows: 1 }";
        case AnswerKind::mcp:
            return "for instance { is_error: false }";
    }
    return "";
}

std::optional<bool> compile_boolean(const config::Value& value, CompileContext& context) {
    if (value.is(ValueKind::boolean)) return value.text == "true";
    context.diagnostics.error(value.mark, "is_error must be true or false");
    return std::nullopt;
}

ValueCondition compile_fixed(const config::Value& value, CompileContext& context) {
    auto condition = ValueCondition::compile(value, context);
    if (condition.optional()) {
        context.diagnostics.error(
            value.mark, "a condition of when cannot be left out", "remove | optional"
        );
    }
    return condition;
}

}  // namespace

Condition Condition::compile(const config::Value& when, AnswerKind kind, CompileContext& context) {
    Condition result;
    if (!when.is(ValueKind::mapping)) {
        context.diagnostics.error(when.mark, "when must be a mapping", example(kind));
        return result;
    }
    if (when.members.empty()) {
        context.diagnostics.error(when.mark, "an empty when would match every answer");
    }
    for (const auto& member : when.members) result.compile_member(member, kind, context);
    return result;
}

void Condition::compile_member(
    const config::Value::Member& member, AnswerKind kind, CompileContext& context
) {
    const bool mcp = kind == AnswerKind::mcp;
    const bool http = kind == AnswerKind::http || mcp;
    if (http && member.key == "status") {
        statuses_ = NumberSet::statuses(member.value, context.diagnostics);
    } else if (kind == AnswerKind::command && member.key == "exit_code") {
        exit_codes_ = NumberSet::exit_codes(member.value, context.diagnostics);
    } else if (kind == AnswerKind::sql && member.key == "rows") {
        rows_ = NumberSet::rows(member.value, context.diagnostics);
    } else if (mcp && member.key == "rpc_error") {
        rpc_errors_ = NumberSet::rpc_errors(member.value, context.diagnostics);
    } else if (mcp && member.key == "is_error") {
        is_error_ = compile_boolean(member.value, context);
    } else if (mcp && member.key == "result_type") {
        result_type_ = compile_fixed(member.value, context);
    } else if (http && member.key == "header") {
        if (!member.value.is(ValueKind::mapping)) {
            context.diagnostics.error(
                member.value.mark,
                "header must be a mapping",
                "for instance { Location: { exists: true } }"
            );
        }
        for (const auto& header : member.value.members) {
            headers_.emplace_back(header.key, compile_fixed(header.value, context));
        }
    } else if (member.key == "body") {
        body_ = PointerConditions::compile(
            member.value, "body", PointerConditions::Optional::forbidden, context
        );
    } else if (kind != AnswerKind::sql && member.key == "text") {
        text_ = compile_fixed(member.value, context);
    } else {
        context.diagnostics.error(
            member.key_mark,
            "unknown condition " + member.key,
            config::nearest_hint(member.key, known_members(kind))
        );
    }
}

Holds Condition::holds(const Answer& answer, const Scope& scope) const {
    if (statuses_ && !(answer.status && statuses_->contains(*answer.status))) return Holds::no;
    if (exit_codes_ && !(answer.exit_code && exit_codes_->contains(*answer.exit_code))) {
        return Holds::no;
    }
    if (rows_ && !(answer.rows && rows_->contains(*answer.rows))) return Holds::no;
    if (rpc_errors_ && !(answer.rpc_error && rpc_errors_->contains(*answer.rpc_error))) {
        return Holds::no;
    }
    if (is_error_ && answer.is_error != is_error_) return Holds::no;
    if (result_type_) {
        const Json type(answer.result_type.value_or(""));
        if (!result_type_->holds(answer.result_type ? &type : nullptr, scope)) return Holds::no;
    }
    for (const auto& [name, condition] : headers_) {
        const auto* text = answer.header(name);
        const Json value = text == nullptr ? Json{} : Json(*text);
        if (!condition.holds(text == nullptr ? nullptr : &value, scope)) return Holds::no;
    }
    // What can be decided is decided first: a body nobody could read matters only where the
    // other members hold.
    const bool text_unknown = text_ && answer.truncated;
    if (text_ && !text_unknown) {
        const Json value(answer.text);
        if (!text_->holds(&value, scope)) return Holds::no;
    }
    if (body_ && !answer.unreadable()) {
        // An empty body is an answer without any member.
        const Json nothing;
        if (!body_->hold(answer.body ? *answer.body : nothing, scope)) return Holds::no;
    }
    const bool undecidable = text_unknown || (body_ && answer.unreadable());
    return undecidable ? Holds::undecidable : Holds::yes;
}

std::optional<outbox::Error> Condition::check(const Scope& scope) const {
    for (const auto& [name, condition] : headers_) {
        if (auto error = condition.check(scope)) return error;
    }
    if (body_) {
        if (auto error = body_->check(scope)) return error;
    }
    if (result_type_) {
        if (auto error = result_type_->check(scope)) return error;
    }
    return text_ ? text_->check(scope) : std::nullopt;
}

bool Condition::names_status(int from, int to) const {
    return statuses_ && statuses_->overlaps(from, to);
}

bool Condition::takes_any_error() const {
    return is_error_ == true && !text_ && !body_;
}

bool Condition::names_rpc_error(int from, int to) const {
    return rpc_errors_ && rpc_errors_->overlaps(from, to);
}

}  // namespace tools
