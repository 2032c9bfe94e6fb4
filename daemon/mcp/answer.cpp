#include "daemon/mcp/answer.hpp"

#include <utility>

#include "daemon/output.hpp"
#include "outbox/utf8.hpp"

namespace outboxd::mcp {
namespace {

using outbox::Json;

// In the order in which people read it.
constexpr std::string_view kCopied[] = {
    "status",
    "replayed",
    "result",
    "error",
    "message",
    "attention",
    "compensated_by",
    "result_expired",
    "created_at"
};

constexpr std::size_t kMaxId = 300;  // bytes of an id that is quoted

constexpr std::string_view kReplayed = " Nothing was executed again.";
// A model has no retry_failed to repeat the call with.
constexpr std::string_view kRetryFailed = " To try it again, repeat the call with retry_failed.";
constexpr std::string_view kRetryByModel =
    " You may change the arguments and call again; whoever runs you can have this very call tried "
    "again.";

bool ends_with_replacement(std::string& text, std::string_view from, std::string_view to) {
    if (!text.ends_with(from)) return false;
    text.replace(text.size() - from.size(), from.size(), to);
    return true;
}

std::string message_of(const Json& row) {
    auto message = member_text(row, "message");
    const auto* replayed = row.find("replayed");
    const bool again = replayed != nullptr && replayed->equals(Json(true));
    if (ends_with_replacement(message, kRetryFailed, kRetryByModel)) return message;
    // What a call that waited is told comes from a look, which replays nothing.
    if (again && message.find(kReplayed) == std::string::npos) message += kReplayed;
    if (member_text(row, "status") == "failed") message += kRetryByModel;
    return message;
}

Json text_content(std::string text) {
    Json out;
    out.set("type", "text");
    out.set("text", std::move(text));
    return out;
}

// The sentence for the model, and the receipt once more as text, for clients that show it no
// structured content.
Json result_of(Json structured) {
    const bool rejected = structured.find("truth")->equals(Json("rejected"));
    Json::Array content;
    content.push_back(text_content(member_text(structured, "message")));
    content.push_back(text_content(outbox::to_text(structured)));
    Json out;
    out.set("content", std::move(content));
    out.set("structuredContent", std::move(structured));
    out.set("isError", rejected);
    return out;
}

// A receipt for what has none.
Json bare(
    Json operation_id, std::string_view truth, std::string_view status, std::string_view text
) {
    Json out;
    out.set("operation_id", std::move(operation_id));
    out.set("truth", truth);
    out.set("status", status);
    out.set("replayed", false);
    out.set("result", Json());
    out.set("error", Json());
    out.set("message", text);
    return out;
}

Json typed(Json type, std::string_view description) {
    Json out;
    out.set("type", std::move(type));
    out.set("description", description);
    return out;
}

Json word(Json::Array choices, std::string_view description) {
    auto out = typed("string", description);
    out.set("enum", std::move(choices));
    return out;
}

}  // namespace

std::string_view truth_of(const Json& row) {
    const auto status = member_text(row, "status");
    if (status == "succeeded") return "succeeded";
    if (status == "failed" || status == "cancelled") return "rejected";
    if (status != "unknown") return "pending";
    return member_text(row, "attention").empty() ? "unknown" : "needs_attention";
}

Json output_schema() {
    Json properties;
    properties.set(
        "operation_id",
        typed(
            Json::Array{"string", "null"},
            "Names this action for outbox_status; null: not recorded."
        )
    );
    properties.set(
        "truth",
        word(
            {"succeeded", "rejected", "pending", "unknown", "needs_attention"},
            "succeeded: it happened. rejected: it did not happen. pending: it will be carried out. "
            "unknown, needs_attention: it may have happened; do not repeat it, do not report "
            "failure."
        )
    );
    properties.set(
        "status",
        word(
            {"pending",
             "scheduled",
             "attempting",
             "succeeded",
             "failed",
             "cancelled",
             "unknown",
             "refused"},
            "Where it stands; refused: it was not recorded."
        )
    );
    properties.set("replayed", typed("boolean", "It was asked for before; nothing was repeated."));
    Json anything;
    anything.set("description", "What the action brought; null: nothing yet.");
    properties.set("result", std::move(anything));
    properties.set(
        "error", typed(Json::Array{"object", "null"}, "Why it failed: code and message.")
    );
    properties.set("message", typed("string", "One sentence for you."));
    properties.set(
        "attention", typed(Json::Array{"string", "null"}, "Why a person has to look, if so.")
    );
    properties.set(
        "compensated_by", typed(Json::Array{"string", "null"}, "The action that undoes this one.")
    );
    properties.set("result_expired", typed("boolean", "The result is no longer kept."));
    properties.set("created_at", typed("string", "When it was first asked for."));
    Json out;
    out.set("type", "object");
    out.set("properties", std::move(properties));
    out.set(
        "required",
        Json::Array{"operation_id", "truth", "status", "replayed", "result", "error", "message"}
    );
    return out;
}

Json answer_of(const Json& row) {
    Json structured;
    structured.set("operation_id", *row.find("operation_id"));
    structured.set("truth", truth_of(row));
    for (const auto name : kCopied) {
        const auto* value = row.find(name);
        if (value != nullptr) structured.set(std::string(name), *value);
    }
    // A look replays nothing.
    if (!structured.find("replayed") || structured.find("replayed")->is_null()) {
        structured.set("replayed", false);
    }
    structured.set("message", message_of(row));
    return result_of(std::move(structured));
}

Json refusal(std::string_view message) {
    return result_of(bare(Json(), "rejected", "refused", message));
}

Json in_doubt(const std::string& operation_id) {
    return result_of(bare(
        operation_id.empty() ? Json() : Json(operation_id),
        "unknown",
        "unknown",
        "It is not known whether this action was recorded: the connection to the database was lost "
        "at that moment, and it may be carried out. Make the same call again, with the same "
        "arguments: if it was recorded, you are told what became of it, and nothing is done twice. "
        "Do not report failure."
    ));
}

Json out_of_sight(const std::string& operation_id) {
    return result_of(bare(
        operation_id,
        "unknown",
        "unknown",
        "It cannot be seen at this moment what became of this action: the outbox's database cannot "
        "be "
        "reached. Nothing was changed. Ask again later, and do not report failure."
    ));
}

// Not rejected: who asks about a mangled id, or about a tool that is not offered any more, would
// take that for an action that did not happen.
Json unseen(std::string_view operation_id) {
    return result_of(bare(
        Json(outbox::utf8_head(operation_id, kMaxId)),
        "unknown",
        "unknown",
        "No action with this id can be seen here, so nothing is known about it. This does not mean "
        "that it did not happen: do not report failure. The id may be wrong (the answer of the "
        "call that asked for the action has it), or its tool is not offered any more. Making that "
        "very call again is safe: if the action is recorded, you are told what became of it."
    ));
}

std::string_view progress_of(std::string_view status) {
    if (status == "attempting") return "It is being carried out.";
    if (status == "unknown") return "It may have happened; the other side is being asked.";
    if (status == "scheduled") return "It is recorded and waits for its time.";
    return "It is recorded and waits to be carried out.";
}

}  // namespace outboxd::mcp
