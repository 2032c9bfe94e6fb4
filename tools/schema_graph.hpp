#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/diagnostics.hpp"
#include "outbox/json.hpp"
#include "tools/leaf_check.hpp"
#include "tools/schema_compiler.hpp"

namespace tools {

// The sub-schemas of one schema, numbered in the order they were found, and which of them apply to
// the very same value. Filled by the compiler; then resolve() and find_loops(), then flat().
class SchemaGraph {
 public:
    struct Node {
        outbox::Json flat{outbox::Json::Object{}};
        LeafCheck leaf;
        config::Mark mark;
        std::vector<std::size_t> in_place;  // sub-schemas for the very same value
    };
    struct Reference {
        std::size_t node;
        std::string pointer;
        config::Mark mark;
        std::string text;
    };
    using OnError = std::function<void(const config::Mark&, std::string, std::string)>;

    explicit SchemaGraph(OnError on_error) : on_error_(std::move(on_error)) {}

    std::size_t add(const std::string& pointer, const config::Mark& mark);
    [[nodiscard]] Node& operator[](std::size_t number) { return nodes_[number]; }
    [[nodiscard]] std::size_t size() const { return nodes_.size(); }
    void refer(Reference reference) { references_.push_back(std::move(reference)); }
    // Appends a reference to `sub` to the list under `key`.
    void add_to_list(std::size_t number, const std::string& key, std::size_t sub);
    [[nodiscard]] static outbox::Json reference_to(std::size_t number);

    // A target may stand anywhere in the schema, also behind what refers to it. Incomplete: some
    // of the schema was left out, so a missing target is no mistake.
    void resolve(bool incomplete);
    // A schema that comes back to itself without having gone into the value would never end.
    void find_loops();
    [[nodiscard]] FlatSchema flat() &&;

 private:
    OnError on_error_;
    std::vector<Node> nodes_;
    std::map<std::string, std::size_t> numbers_;  // by pointer
    std::vector<Reference> references_;
};

}  // namespace tools
