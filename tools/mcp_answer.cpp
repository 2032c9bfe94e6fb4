#include "tools/mcp_answer.hpp"

#include <utility>

namespace tools {
namespace {

using outbox::Json;

struct Content {
    bool listed = false;  // there is a list, also an empty one
    std::size_t others = 0;
    std::size_t texts = 0;
    std::string text;  // joined by line ends
};

Content content_of(const Json& result) {
    Content out;
    const auto* list = result.find("content");
    const auto* items = list == nullptr ? nullptr : list->as_array();
    if (items == nullptr) return out;
    out.listed = true;
    for (const auto& item : *items) {
        const auto* text = item.find("text");
        const auto* type = item.find("type");
        const bool is_text = type != nullptr && type->equals(Json("text")) && text != nullptr &&
                             text->as_string() != nullptr;
        if (!is_text) {
            ++out.others;
            continue;
        }
        if (out.texts++ > 0) out.text += '\n';
        out.text += *text->as_string();
    }
    return out;
}

// Servers older than 2025-06-18 have no other place for it.
void add_structured_content(Json& result, const Content& content) {
    if (result.find("structuredContent") != nullptr) return;
    if (content.texts != 1 || content.others != 0) return;
    auto parsed = outbox::parse_foreign_json(content.text);
    const bool structure = parsed.value && (parsed.value->as_object() != nullptr ||
                                            parsed.value->as_array() != nullptr);
    if (structure) result.set("structuredContent", std::move(*parsed.value));
}

void read_result(Answer& answer, Json result) {
    const auto* type = result.find("resultType");
    answer.result_type = "complete";
    if (type != nullptr) {
        const auto* name = type->as_string();
        answer.result_type = name == nullptr ? "invalid" : *name;
    }
    const auto content = content_of(result);
    answer.text = content.text;
    answer.diagnosis = content.text;
    // Only what is the result of a tool has succeeded or failed: neither a question back nor
    // something of another shape may match is_error: false.
    const auto* structured = result.find("structuredContent");
    const bool whole = content.listed || (structured != nullptr && !structured->is_null());
    if (answer.result_type == "complete" && whole) {
        const auto* error = result.find("isError");
        if (error == nullptr || error->is_null()) {
            answer.is_error = false;
        } else if (const auto* flag = error->as_bool()) {
            answer.is_error = *flag;
        }
    }
    add_structured_content(result, content);
    answer.body = std::move(result);
}

McpEnd failed(bool sent, outbox::Cause cause, std::string code, std::string message) {
    McpEnd end;
    end.what =
        McpFailure{.sent = sent, .cause = cause, .error = {std::move(code), std::move(message)}};
    return end;
}

}  // namespace

Answer to_answer(const RpcMessage& message) {
    Answer answer;
    if (message.kind == RpcMessage::Kind::error) {
        answer.rpc_error = message.code;
        answer.body = message.body;
        const auto* text = message.body.find("message");
        if (text != nullptr && text->as_string() != nullptr) answer.text = *text->as_string();
        return answer;
    }
    read_result(answer, message.body);
    return answer;
}

McpEnd not_called(std::string code, std::string message) {
    return failed(false, outbox::Cause::other, std::move(code), std::move(message));
}

McpEnd lost(outbox::Cause cause, std::string code, std::string message) {
    return failed(true, cause, std::move(code), std::move(message));
}

}  // namespace tools
