#include "outbox/operation_key.hpp"

#include "outbox/sha256.hpp"

namespace outbox {

OperationKey operation_key(
    std::string_view tool, const Json& arguments, std::string_view run_id, int occurrence
) {
    auto trimmed = canonical_json(arguments, true);
    if (trimmed.error) return {.key = {}, .canonical = {}, .error = std::move(trimmed.error)};
    // The members stand in canonical order: arguments, occurrence, run_id, tool.
    std::string text = "{\"arguments\":" + trimmed.text;
    if (occurrence > 1) text += ",\"occurrence\":" + std::to_string(occurrence);
    text += ",\"run_id\":" + canonical_json(Json(run_id), false).text;
    text += ",\"tool\":" + canonical_json(Json(tool), false).text + "}";
    auto key = sha256_hex(text);
    return {.key = std::move(key), .canonical = std::move(text), .error = std::nullopt};
}

}  // namespace outbox
