#include "daemon/mcp/offer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "config/diagnostics.hpp"
#include "config/nearest.hpp"
#include "daemon/mcp/answer.hpp"
#include "tools/value_template.hpp"

namespace outboxd::mcp {
namespace {

using config::Value;
using outbox::Json;

constexpr std::string_view kCursor = "after:";

// What ${file:} and ${cred:} brought in is shown as the file says it. A schema's numbers keep their
// digits.
void hide_secrets(Value& value) {
    if (value.from_secret) value.text = value.source.empty() ? "***" : value.source;
    for (auto& item : value.items) hide_secrets(item);
    for (auto& member : value.members) hide_secrets(member.value);
}

// x-mcp-header asks clients to send arguments as headers as well; nobody asks for that here.
void drop_mirrors(Value& value) {
    std::erase_if(value.members, [](const auto& member) {
        return member.key == "x-mcp-header" && member.value.is(Value::Kind::string);
    });
    for (auto& item : value.items) drop_mirrors(item);
    for (auto& member : value.members) drop_mirrors(member.value);
}

Json input_schema(const config::Tool& tool) {
    Json schema{Json::Object{}};
    if (tool.arguments) {
        auto shown = *tool.arguments;
        hide_secrets(shown);
        drop_mirrors(shown);
        schema = outbox::parse_json(tools::plain_json_text(shown)).value.value_or(schema);
    }
    schema.set("type", "object");  // arguments always are
    return schema;
}

// A text of the tool, as the file says it where it comes from a secret.
std::string shown_text(const config::Tool& tool, std::string_view key, const std::string& value) {
    const auto* written = tool.source.find(key);
    if (written == nullptr || !written->from_secret) return value;
    return written->source.empty() ? "***" : written->source;
}

Json annotations(bool write, bool destructive, bool open_world) {
    Json out;
    out.set("readOnlyHint", !write);
    out.set("destructiveHint", write && destructive);
    out.set("idempotentHint", true);
    out.set("openWorldHint", open_world);
    return out;
}

Json listing_of(
    std::string_view name,
    std::string_view title,
    std::string_view description,
    Json input,
    Json hints
) {
    Json out;
    out.set("name", name);
    if (!title.empty()) out.set("title", title);
    if (!description.empty()) out.set("description", description);
    out.set("inputSchema", std::move(input));
    out.set("outputSchema", output_schema());
    out.set("annotations", std::move(hints));
    return out;
}

Json text_property(std::string_view description) {
    Json out;
    out.set("type", "string");
    out.set("description", description);
    return out;
}

Json object_schema(Json properties, Json::Array required) {
    Json out;
    out.set("type", "object");
    out.set("properties", std::move(properties));
    out.set("required", std::move(required));
    out.set("additionalProperties", false);
    return out;
}

OfferedTool status_tool() {
    Json properties;
    properties.set("operation_id", text_property("The operation_id of an earlier answer."));
    OfferedTool tool;
    tool.name = kStatusTool;
    tool.write = false;
    tool.own = true;
    tool.listing = listing_of(
        kStatusTool,
        "What became of an action",
        "What became of an action that was asked for earlier. Looks only: nothing is carried out.",
        object_schema(std::move(properties), {"operation_id"}),
        annotations(false, false, false)
    );
    return tool;
}

OfferedTool compensate_tool(const std::vector<std::string>& names) {
    Json::Array choices(names.begin(), names.end());
    auto name = text_property("Which compensation; may be left out where there is only one.");
    name.set("enum", std::move(choices));
    Json arguments;
    arguments.set("type", "object");
    arguments.set("description", "What the compensation itself needs, if anything.");
    Json properties;
    properties.set("operation_id", text_property("The operation_id of the action to undo."));
    properties.set("name", std::move(name));
    properties.set("arguments", std::move(arguments));
    properties.set("reason", text_property("Why; it is kept for people."));
    OfferedTool tool;
    tool.name = kCompensateTool;
    tool.own = true;
    tool.listing = listing_of(
        kCompensateTool,
        "Undo an action",
        "Undoes an earlier action by the compensation that its tool has, once. What was not "
        "carried "
        "out yet is cancelled instead. Only when undoing was asked for, never to tidy up after an "
        "answer that is pending or unknown.",
        object_schema(std::move(properties), {"operation_id"}),
        annotations(true, true, true)
    );
    return tool;
}

// Why this tool cannot be offered; empty when it can.
std::string objection(const config::Config& config, const std::string& name) {
    if (name == kStatusTool || name == kCompensateTool) {
        return fmt::format("{} is a name of the MCP face itself: rename the tool", name);
    }
    std::vector<std::string> names;
    for (const auto& tool : config.tools) {
        if (tool.name == name && !tool.compensates_tool) return {};
        if (tool.name == name) {
            return fmt::format("{} is a compensation: {} offers it", name, kCompensateTool);
        }
        if (!tool.compensates_tool) names.push_back(tool.name);
    }
    return fmt::format(
        "the configuration has no tool {}; {}", name, config::nearest_hint(name, names)
    );
}

OfferedTool offered(const config::Tool& tool) {
    OfferedTool out;
    out.name = tool.name;
    out.write = tool.write;
    for (const auto& field : tool.dedup_fields) out.dedup_fields.push_back(field.value);
    config::Diagnostics ignored;  // the configuration was checked when it was loaded
    if (tool.arguments) out.schema = tools::ArgumentsSchema::compile(*tool.arguments, ignored);
    out.listing = listing_of(
        tool.name,
        shown_text(tool, "title", tool.title),
        shown_text(tool, "description", tool.description),
        input_schema(tool),
        annotations(tool.write, tool.destructive, !tool.own_transaction())
    );
    return out;
}

}  // namespace

Offer::Made Offer::make(const config::Config& config, const std::vector<std::string>& names) {
    const auto wanted = [&](const config::Tool& tool) {
        if (names.empty()) return tool.expose && !tool.compensates_tool;
        return std::find(names.begin(), names.end(), tool.name) != names.end();
    };
    for (const auto& name : names) {
        if (auto problem = objection(config, name); !problem.empty()) return {nullptr, problem};
    }
    auto offer = std::make_unique<Offer>();
    std::vector<std::string> compensations;
    for (const auto& tool : config.tools) {
        if (!wanted(tool)) continue;
        if (auto problem = objection(config, tool.name); !problem.empty())
            return {nullptr, problem};
        offer->tools_.push_back(offered(tool));
        for (const auto& name : tool.compensations) {
            const bool known =
                std::find(compensations.begin(), compensations.end(), name) != compensations.end();
            if (!known) compensations.push_back(name);
        }
    }
    offer->tools_.push_back(status_tool());
    if (!compensations.empty()) offer->tools_.push_back(compensate_tool(compensations));
    std::sort(offer->tools_.begin(), offer->tools_.end(), [](const auto& a, const auto& b) {
        return a.name < b.name;
    });
    return {std::move(offer), {}};
}

const OfferedTool* Offer::find(std::string_view name) const {
    for (const auto& tool : tools_) {
        if (tool.name == name) return &tool;
    }
    return nullptr;
}

bool Offer::covers(std::string_view tool) const {
    const auto* found = find(tool.substr(0, tool.find(':')));
    return found != nullptr && !found->own;
}

std::optional<Json> Offer::page(const Json* cursor) const {
    std::size_t at = 0;
    if (cursor != nullptr) {
        const auto* text = cursor->as_string();
        if (text == nullptr || !text->starts_with(kCursor)) return std::nullopt;
        const auto last = text->substr(kCursor.size());
        while (at < tools_.size() && tools_[at].name <= last) ++at;
    }
    Json::Array listed;
    while (at < tools_.size() && listed.size() < kPage) listed.push_back(tools_[at++].listing);
    Json out;
    if (at < tools_.size()) out.set("nextCursor", std::string(kCursor) + tools_[at - 1].name);
    out.set("tools", std::move(listed));
    return out;
}

}  // namespace outboxd::mcp
