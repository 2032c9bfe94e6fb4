#include "outbox/pg/catalogue.hpp"

#include <utility>

#include "outbox/pg/rows.hpp"

namespace outbox::pg {

namespace {

Json array_of(const std::vector<std::string>& texts) {
    Json::Array array;
    for (const auto& text : texts) {
        array.emplace_back(text);
    }
    return array;
}

Json to_json(const ToolPolicy& policy) {
    Json tool;
    tool.set("tool", policy.name);
    tool.set("description", policy.description);
    tool.set("effect", policy.effect == Effect::read ? "read" : "write");
    tool.set("revision", policy.revision);
    tool.set("dedup_fields", array_of(policy.dedup_fields));
    tool.set("compensations", array_of(policy.compensations));
    tool.set("needs_original", array_of(policy.needs_original));
    tool.set("max_attempts", policy.retry.max_attempts);
    tool.set("timeout_ms", static_cast<std::int64_t>(policy.timeout.count()));
    tool.set("settle_ms", static_cast<std::int64_t>(policy.reconcile.settle.count()));
    tool.set("request_hash", policy.request_hash);
    tool.set("key_settings", pg::to_json(policy.key));
    tool.set("leaves_doubt", policy.leaves_doubt());
    auto schema = parse_json(policy.arguments_schema);
    if (schema.value) {
        tool.set("arguments_schema", std::move(*schema.value));
    }
    return tool;
}

}  // namespace

std::string catalogue_text(const std::vector<ToolPolicy>& tools) {
    Json::Array array;
    for (const auto& policy : tools) {
        array.push_back(to_json(policy));
    }
    return to_text(array);
}

}  // namespace outbox::pg
