#include "daemon/api_story.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "daemon/output.hpp"
#include "daemon/redaction.hpp"
#include "tools/rehearsal.hpp"

namespace outboxd {

namespace {

// Members of a row that hold what the planner, the other side or a person wrote.
constexpr std::string_view kForeign[] = {
    "result", "error", "last_error", "message", "error_message", "labels", "detail", "run_id"
};

outbox::Json shown(const Redaction& redaction, outbox::Json row) {
    for (const auto name : kForeign) {
        const auto* member = row.find(name);
        if (member == nullptr || member->is_null()) continue;
        // Our own sentence, but for why it failed.
        if (name == "message" && member_text(row, "status") != "failed") continue;
        row.set(std::string(name), redaction.elsewhere(*member));
    }
    return row;
}

// Of a list's row the arguments are not there, so nobody knows which of its texts repeat them.
outbox::Json listed(const Redaction& redaction, outbox::Json row) {
    for (const auto name : {"error_message", "labels", "run_id"}) {
        const auto* member = row.find(name);
        const bool hide = redaction.hides_all() ||
                          (redaction.hides_something() && std::string_view(name) != "run_id");
        if (hide && member != nullptr && !member->is_null()) row.set(name, kHidden);
    }
    return row;
}

// Deeper than what we store ourselves; a planner's own INSERT may be nested further still.
constexpr outbox::ParseLimits kDeep{.max_depth = 640};

outbox::Json read(const std::optional<std::string>& text) {
    if (!text) return {};
    auto parsed = outbox::parse_json(*text, kDeep);
    return parsed.value ? std::move(*parsed.value)
                        : outbox::Json("(cannot be shown: " + parsed.error + ")");
}

outbox::Json refusal(const std::string& code, const std::string& message) {
    outbox::Json error;
    error.set("code", code);
    error.set("message", message);
    return error;
}

using Rendered = tools::Rendered<tools::SentRequest>;

void set_rendered(outbox::Json& out, const char* name, const Rendered& sent) {
    if (sent.ok()) {
        out.set(name, tools::to_json(sent.value()));
        return;
    }
    outbox::Json error;
    error.set("not_sent", refusal(sent.error().code, sent.error().message));
    out.set(name, std::move(error));
}

// What `outboxd render` prints, of this very operation: {request, lookup} or {problem}.
outbox::Json rendered(
    const config::Config& config,
    const outbox::pg::ToldOperation& told,
    const outbox::Json& intent,
    outbox::Json original_arguments,
    outbox::Json original_result
) {
    outbox::Json out;
    if (told.pruned) {
        out.set("problem", "The arguments were pruned.");
        return out;
    }
    std::string why;
    auto stage = tools::Rehearsal::of(config, told.tool, why);
    if (!stage) {
        out.set("problem", why.empty() ? "This daemon's configuration has no such tool." : why);
        return out;
    }
    outbox::ToolCall call;
    call.intent.id = outbox::OperationId(member_text(intent, "operation_id"));
    call.intent.tool = told.tool;
    call.intent.arguments = *intent.find("arguments");
    if (auto run = member_text(intent, "run_id"); !run.empty()) call.intent.run_id = run;
    if (told.original_tool) {
        call.intent.compensates = outbox::OperationId(member_text(intent, "compensates"));
        call.intent.original_arguments = std::move(original_arguments);
        call.intent.original_result = std::move(original_result);
    }
    call.intent.created_at = outbox::DbTime{std::chrono::microseconds(told.created_us)};
    call.first_sent_at = outbox::DbTime{std::chrono::microseconds(told.first_sent_us)};
    call.attempt = std::max(told.attempts, 1);
    call.provider_key = stage->key_of(call.intent.id.value);
    set_rendered(out, "request", stage->request(call));
    if (stage->write()) set_rendered(out, "lookup", stage->lookup(call));
    return out;
}

outbox::Json shown_request(
    const config::Config& config,
    const outbox::pg::ToldOperation& told,
    const Redaction& redaction,
    const outbox::Json& intent,
    const outbox::Json& original_arguments,
    const outbox::Json& original_result
) {
    if (!redaction.hides_all()) {
        return redaction.elsewhere(
            rendered(config, told, intent, original_arguments, original_result)
        );
    }
    outbox::Json none;
    none.set(
        "problem",
        "This daemon's configuration does not have the tool, so it cannot know what is to be "
        "hidden: arguments, results and texts are not shown."
    );
    return none;
}

}  // namespace

outbox::Json api_items(const std::vector<std::string>& rows) {
    outbox::Json::Array items;
    for (const auto& row : rows) items.push_back(row_of(row));
    outbox::Json list;
    list.set("items", std::move(items));
    list.set("next", nullptr);
    return list;
}

std::string api_list(
    const config::Config& config,
    const std::vector<outbox::pg::BrowsedOperation>& rows,
    std::size_t limit
) {
    std::map<std::string, Redaction> redactions;
    outbox::Json::Array items;
    for (const auto& row : rows) {
        if (items.size() == limit) break;
        const auto found = redactions.try_emplace(row.tool, config, row.tool).first;
        items.push_back(listed(found->second, row_of(row.row)));
    }
    outbox::Json list;
    list.set("items", std::move(items));
    list.set("next", nullptr);
    if (rows.size() > limit) list.set("next", std::to_string(rows[limit - 1].seq));
    return outbox::to_text(list);
}

std::string api_story(const config::Config& config, const outbox::pg::ToldOperation& told) {
    Redaction redaction(config, told.tool);
    // Hidden values are known once the arguments were seen, so those come first.
    auto original_arguments = redaction.arguments(read(told.original_arguments));
    auto intent = read(told.intent);
    intent.set("arguments", redaction.arguments(read(told.arguments)));
    auto original_result = redaction.elsewhere(read(told.original_result));

    outbox::Json::Array events;
    for (const auto& event : told.events) events.push_back(shown(redaction, read(event)));
    outbox::Json story;
    story.set("operation", shown(redaction, read(told.operation)));
    story.set(
        "rendered",
        shown_request(config, told, redaction, intent, original_arguments, original_result)
    );
    story.set("intent", shown(redaction, std::move(intent)));
    story.set("work", read(told.work));
    story.set("events", std::move(events));
    story.set("more_events", told.more_events);
    story.set("original_arguments", std::move(original_arguments));
    story.set("original_result", std::move(original_result));
    story.set("compensations", row_of(told.compensations));
    story.set("undone_by", row_of(told.undone_by));
    story.set("redacted", redaction.hides_something());
    return outbox::to_text(story);
}

}  // namespace outboxd
