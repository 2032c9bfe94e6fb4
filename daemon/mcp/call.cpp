#include "daemon/mcp/call.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <charconv>
#include <utility>

#include "daemon/text.hpp"
#include "outbox/operation_key.hpp"
#include "outbox/utf8.hpp"

namespace outboxd::mcp {
namespace {

using outbox::Json;

constexpr std::size_t kMaxName = 200;  // of what is quoted
constexpr std::size_t kMaxRun = 200;   // bytes, as the SQL interface has it

Fault invalid(std::string message) {
    return {kInvalidParams, std::move(message), {}, 200};
}

bool has_control(std::string_view text) {
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return true;
    }
    return false;
}

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto length = outbox::utf8_sequence(text, at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

// What a host, a shell or a program sends in place of a value that nobody set: one run for
// everybody, for ever.
bool is_placeholder(const std::string& run) {
    static const re2::RE2 kPattern(R"((?s).*(\$\{|\{\{|\$\().*|\s*(\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|)"
                                   R"(<[^<>]*>|undefined|null|None|nil|NaN|\[object Object\])\s*)");
    return re2::RE2::FullMatch(run, kPattern);
}

// The run of this call. Refused: it is no run; neither: there is none.
std::variant<std::optional<std::string>, Refused> read_run(
    const Message& message, const RunSource& source
) {
    auto run = source.run_id;
    if (const auto* given = message.meta(kRunKey)) {
        if (given->as_string() == nullptr) {
            return Refused{fmt::format("Nothing was done: _meta[\"{}\"] must be a text.", kRunKey)};
        }
        run = *given->as_string();
    }
    if (run && (run->empty() || run->size() > kMaxRun || has_control(*run))) {
        return Refused{fmt::format(
            "Nothing was done: the run id of this call must have 1 to {} bytes and no control "
            "characters.",
            kMaxRun
        )};
    }
    if (run && !is_utf8(*run)) {
        return Refused{"Nothing was done: the run id of this call is no valid UTF-8."};
    }
    if (run && run->find_first_not_of(' ') == std::string::npos) {
        return Refused{
            "Nothing was done: the run id of this call is blank. Whoever runs this agent sets it."
        };
    }
    if (run && is_placeholder(*run)) {
        return Refused{
            "Nothing was done: the run id of this call is a placeholder that nobody filled in. "
            "Whoever runs this agent sets the variable that it names."
        };
    }
    return run;
}

std::variant<std::optional<int>, Refused> read_occurrence(const Message& message) {
    const auto* given = message.meta(kOccurrenceKey);
    if (given == nullptr) return std::optional<int>();
    int value = 0;
    if (const auto* number = given->as_number()) {
        const auto* end = number->text.data() + number->text.size();
        const auto read = std::from_chars(number->text.data(), end, value);
        if (read.ec == std::errc{} && read.ptr == end && value >= 1) return std::optional(value);
    }
    return Refused{fmt::format(
        "Nothing was done: _meta[\"{}\"] must be an integer from 1 on: 2 for a second call that is "
        "meant to do the same once more.",
        kOccurrenceKey
    )};
}

// W3C Trace Context; what is none is left out: it never decides whether something is done.
std::optional<std::string> read_traceparent(const Message& message) {
    static const re2::RE2 kPattern("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}");
    const auto* given = message.meta("traceparent");
    const auto* text = given == nullptr ? nullptr : given->as_string();
    if (text == nullptr || !re2::RE2::FullMatch(*text, kPattern)) return std::nullopt;
    return *text;
}

// As outbox.derive_id does; empty where it refuses, which the database then says better.
std::string derived_id(
    const OfferedTool& tool, const Json& arguments, const std::string& run, int occurrence
) {
    Json counted = arguments;
    if (!tool.dedup_fields.empty()) {
        counted = Json(Json::Object{});
        for (const auto& field : tool.dedup_fields) {
            const auto* value = arguments.find(field);
            if (value == nullptr) return {};
            counted.set(field, *value);
        }
    }
    return outbox::operation_key(tool.name, counted, run, occurrence).key;
}

Plan plan_enqueue(
    const Message& message,
    const OfferedTool& tool,
    const Json& arguments,
    const RunSource& source,
    const std::string& fresh_id
) {
    if (tool.schema) {
        if (auto violation = tool.schema->violation(arguments)) {
            return Refused{"Nothing was done. " + *violation};
        }
    }
    auto run = read_run(message, source);
    if (auto* refused = std::get_if<Refused>(&run)) return std::move(*refused);
    auto occurrence = read_occurrence(message);
    if (auto* refused = std::get_if<Refused>(&occurrence)) return std::move(*refused);
    const auto* again = message.meta(kRetryKey);
    if (again != nullptr && again->as_bool() == nullptr) {
        return Refused{fmt::format("Nothing was done: _meta[\"{}\"] is true or false.", kRetryKey)};
    }
    EnqueuePlan plan;
    plan.call.tool = tool.name;
    plan.call.arguments = outbox::to_text(arguments);
    plan.call.run_id = std::get<std::optional<std::string>>(run);
    plan.call.occurrence = std::get<std::optional<int>>(occurrence);
    plan.call.traceparent = read_traceparent(message);
    plan.call.retry_failed = again != nullptr && *again->as_bool();
    if (plan.call.run_id) {
        plan.operation_id =
            derived_id(tool, arguments, *plan.call.run_id, plan.call.occurrence.value_or(1));
        return plan;
    }
    if (tool.write) {
        return Refused{fmt::format(
            "Nothing was done: this call does not say to which run it belongs, so a repetition "
            "could "
            "not be told from a new action. Whoever runs this agent sets it: {}.",
            source.hint
        )};
    }
    plan.call.operation_id = plan.operation_id = fresh_id;
    plan.call.occurrence.reset();
    return plan;
}

// A member of the arguments of our own tools. Their schemas are closed; this is all that they say.
std::variant<std::optional<std::string>, Refused> text_member(
    const Json& arguments, std::string_view name
) {
    const auto* value = arguments.find(name);
    if (value == nullptr || value->is_null()) return std::optional<std::string>();
    const auto* text = value->as_string();
    if (text != nullptr && text->find('\0') != std::string::npos) {
        return Refused{fmt::format(
            "Nothing was done: at \"/{}\": the text holds the character U+0000; leave it out.", name
        )};
    }
    if (text != nullptr) return std::optional(*text);
    return Refused{fmt::format("Nothing was done: at \"/{}\": a text is expected.", name)};
}

Plan plan_own(std::string_view name, const Json& arguments) {
    const bool compensates = name == kCompensateTool;
    for (const auto& [member, value] : *arguments.as_object()) {
        const bool known =
            member == "operation_id" ||
            (compensates && (member == "name" || member == "arguments" || member == "reason"));
        if (known) continue;
        return Refused{fmt::format(
            "Nothing was done: at \"/{}\": {} has no such argument.",
            printable(outbox::utf8_head(member, kMaxName)),
            name
        )};
    }
    std::optional<std::string> texts[3];
    constexpr std::string_view kNames[] = {"operation_id", "name", "reason"};
    for (std::size_t i = 0; i < 3; ++i) {
        auto read = text_member(arguments, kNames[i]);
        if (auto* refused = std::get_if<Refused>(&read)) return std::move(*refused);
        texts[i] = std::get<std::optional<std::string>>(std::move(read));
    }
    if (!texts[0]) {
        return Refused{
            "Nothing was done: at \"/operation_id\": the operation_id of an earlier answer "
            "is missing."
        };
    }
    if (!compensates) return StatusPlan{*texts[0]};
    const auto* own = arguments.find("arguments");
    if (own != nullptr && own->as_object() == nullptr) {
        return Refused{"Nothing was done: at \"/arguments\": an object is expected."};
    }
    CompensatePlan plan;
    plan.call.operation_id = *texts[0];
    plan.call.name = texts[1];
    plan.call.reason = texts[2];
    if (own != nullptr) plan.call.arguments = outbox::to_text(*own);
    return plan;
}

}  // namespace

Plan plan_call(
    const Message& message, const Offer& offer, const RunSource& run, const std::string& fresh_id
) {
    const auto* name = message.params.find("name");
    if (name == nullptr || name->as_string() == nullptr) {
        return invalid("params.name must be the name of a tool");
    }
    const auto* tool = offer.find(*name->as_string());
    if (tool == nullptr) {
        return invalid(
            "Unknown tool: " + printable(outbox::utf8_head(*name->as_string(), kMaxName))
        );
    }
    static const Json kNothing{Json::Object{}};
    const auto* given = message.params.find("arguments");
    const auto& arguments = given == nullptr || given->is_null() ? kNothing : *given;
    if (arguments.as_object() == nullptr) return invalid("params.arguments must be an object");
    if (tool->own) return plan_own(tool->name, arguments);
    return plan_enqueue(message, *tool, arguments, run, fresh_id);
}

}  // namespace outboxd::mcp
