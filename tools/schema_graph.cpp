#include "tools/schema_graph.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace tools {

using outbox::Json;

std::size_t SchemaGraph::add(const std::string& pointer, const config::Mark& mark) {
    const auto number = nodes_.size();
    nodes_.emplace_back();
    nodes_[number].mark = mark;
    numbers_.emplace(pointer, number);
    return number;
}

Json SchemaGraph::reference_to(std::size_t number) {
    Json out;
    out.set("$ref", fmt::format("#/definitions/{}", number));
    return out;
}

void SchemaGraph::add_to_list(std::size_t number, const std::string& key, std::size_t sub) {
    auto& flat = nodes_[number].flat;
    if (flat.find(key) == nullptr) flat.set(key, Json(Json::Array{}));
    for (auto& [name, value] : *flat.as_object()) {
        if (name == key) value.as_array()->push_back(reference_to(sub));
    }
}

void SchemaGraph::resolve(bool incomplete) {
    for (const auto& reference : references_) {
        const auto found = numbers_.find(reference.pointer);
        if (found == numbers_.end()) {
            if (incomplete) continue;
            on_error_(
                reference.mark,
                fmt::format("there is no schema at {}", reference.text),
                "name a sub-schema by its JSON Pointer, such as '#/$defs/name'"
            );
            continue;
        }
        nodes_[reference.node].in_place.push_back(found->second);
        add_to_list(reference.node, "allOf", found->second);
    }
}

void SchemaGraph::find_loops() {
    enum class State { fresh, open, done };
    std::vector<State> states(nodes_.size(), State::fresh);
    for (std::size_t start = 0; start < nodes_.size(); ++start) {
        if (states[start] != State::fresh) continue;
        std::vector<std::pair<std::size_t, std::size_t>> path{{start, 0}};
        states[start] = State::open;
        while (!path.empty()) {
            auto& [at, next] = path.back();
            if (next == nodes_[at].in_place.size()) {
                states[at] = State::done;
                path.pop_back();
                continue;
            }
            const auto to = nodes_[at].in_place[next++];
            if (states[to] == State::open) {
                on_error_(
                    nodes_[at].mark,
                    "this schema leads back to itself for the same value",
                    "a recursive $ref belongs below properties or items"
                );
            } else if (states[to] == State::fresh) {
                states[to] = State::open;
                path.emplace_back(to, 0);
            }
        }
    }
}

FlatSchema SchemaGraph::flat() && {
    FlatSchema flat;
    Json definitions(Json::Object{});
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        auto& node = nodes_[i];
        if (!node.leaf.empty()) {
            node.flat.set(kLeafKeyword, static_cast<std::int64_t>(flat.leaves.size()));
            flat.leaves.push_back(std::move(node.leaf));
        }
        definitions.set(std::to_string(i), std::move(node.flat));
    }
    flat.document.set("$ref", "#/definitions/0");
    flat.document.set("definitions", std::move(definitions));
    return flat;
}

}  // namespace tools
