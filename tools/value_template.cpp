#include "tools/value_template.hpp"

namespace tools {
namespace {

using outbox::Json;
using Kind = config::Value::Kind;

Json plain_json(const config::Value& value) {
    switch (value.kind) {
        case Kind::null:
            return {};
        case Kind::boolean:
            return Json(value.text == "true");
        case Kind::string:
            return Json(value.text);
        case Kind::number: {
            auto parsed = outbox::parse_json(value.text);
            return parsed.value ? std::move(*parsed.value) : Json(value.text);
        }
        case Kind::sequence: {
            Json::Array items;
            for (const auto& item : value.items) items.push_back(plain_json(item));
            return Json(std::move(items));
        }
        case Kind::mapping: {
            Json::Object members;
            for (const auto& member : value.members) {
                members.emplace_back(member.key, plain_json(member.value));
            }
            return Json(std::move(members));
        }
    }
    return {};
}

}  // namespace

Json scalar_json(const config::Value& value, config::Diagnostics& diagnostics) {
    if (value.kind != Kind::number) return plain_json(value);
    auto parsed = outbox::parse_json(value.text);
    if (parsed.value && parsed.value->as_number() != nullptr) return std::move(*parsed.value);
    diagnostics.error(
        value.mark, value.text + " is not a JSON number", "write it in decimal, or quote it"
    );
    return {};
}

std::string plain_json_text(const config::Value& value) {
    return outbox::to_text(plain_json(value));
}

ValueTemplate ValueTemplate::compile(const config::Value& value, CompileContext& context) {
    ValueTemplate compiled;
    if (value.kind == Kind::string) {
        auto text = Template::compile({value.text, value.mark}, context);
        if (text.has_expressions()) {
            compiled.node_ = std::move(text);
        } else {
            compiled.node_ = Json(value.text);
        }
    } else if (value.kind == Kind::sequence) {
        Items items;
        for (const auto& item : value.items) items.push_back(compile(item, context));
        compiled.node_ = std::move(items);
    } else if (value.kind == Kind::mapping) {
        Members members;
        for (const auto& member : value.members) {
            if (member.key.find("{{") != std::string::npos) {
                context.diagnostics.error(
                    member.key_mark,
                    "a template cannot be the name of a member",
                    "names are fixed by the file"
                );
            }
            members.emplace_back(member.key, compile(member.value, context));
        }
        compiled.node_ = std::move(members);
    } else {
        compiled.node_ = scalar_json(value, context.diagnostics);
    }
    return compiled;
}

bool ValueTemplate::optional() const {
    const auto* text = std::get_if<Template>(&node_);
    return text != nullptr && text->optional();
}

Rendered<std::optional<Json>> ValueTemplate::render(const Scope& scope) const {
    if (const auto* json = std::get_if<Json>(&node_)) return std::optional<Json>(*json);
    if (const auto* text = std::get_if<Template>(&node_)) return text->render_value(scope);
    if (const auto* items = std::get_if<Items>(&node_)) {
        Json::Array array;
        for (const auto& item : *items) {
            auto rendered = item.render(scope);
            if (!rendered.ok()) return rendered;
            if (rendered.value()) array.push_back(std::move(*rendered.value()));
        }
        return std::optional<Json>(Json(std::move(array)));
    }
    Json::Object object;
    for (const auto& [name, member] : std::get<Members>(node_)) {
        auto rendered = member.render(scope);
        if (!rendered.ok()) return rendered;
        if (rendered.value()) object.emplace_back(name, std::move(*rendered.value()));
    }
    return std::optional<Json>(Json(std::move(object)));
}

}  // namespace tools
