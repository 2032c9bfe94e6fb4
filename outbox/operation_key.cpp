#include "outbox/operation_key.hpp"

#include "outbox/sha256.hpp"
#include "outbox/utf8.hpp"

namespace outbox {
namespace {

// What Postgres would not take as text has no key there, so it has none here.
bool is_text(std::string_view name) {
    return name.find('\0') == name.npos && repair_utf8(name) == name;
}

OperationKey refuse(std::string message) {
    return {.key = {}, .canonical = {}, .error = KeyError{std::move(message)}};
}

}  // namespace

OperationKey operation_key(
    std::string_view tool, const Json& arguments, std::string_view run_id, int occurrence
) {
    if (occurrence < 1) return refuse("occurrence counts from 1: leave it out for the first call");
    if (!is_text(tool) || !is_text(run_id)) {
        return refuse("tool and run_id must be UTF-8 text without NUL");
    }
    auto trimmed = canonical_json(arguments, true);
    if (trimmed.error) return refuse(std::move(trimmed.error->message));
    // The members stand in canonical order: arguments, occurrence, run_id, tool.
    std::string text = "{\"arguments\":" + trimmed.text;
    if (occurrence > 1) text += ",\"occurrence\":" + std::to_string(occurrence);
    text += ",\"run_id\":" + canonical_json(Json(run_id), false).text;
    text += ",\"tool\":" + canonical_json(Json(tool), false).text + "}";
    auto key = sha256_hex(text);
    return {.key = std::move(key), .canonical = std::move(text), .error = std::nullopt};
}

}  // namespace outbox
