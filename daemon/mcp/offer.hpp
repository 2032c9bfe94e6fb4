#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "outbox/json.hpp"
#include "tools/arguments_schema.hpp"

namespace outboxd::mcp {

inline constexpr std::string_view kStatusTool = "outbox_status";
inline constexpr std::string_view kCompensateTool = "outbox_compensate";

// A tool as agents see it.
struct OfferedTool {
    std::string name;
    bool write = true;
    bool own = false;  // outbox_status or outbox_compensate: no tool of the configuration
    std::vector<std::string> dedup_fields;
    std::unique_ptr<const tools::ArgumentsSchema> schema;  // null: any object
    outbox::Json listing;                                  // its entry in tools/list
};

// The tools that are offered, and nothing that is secret about them. Immutable.
class Offer {
 public:
    // Those of the names, or, without names, those with expose: true; and the tools of our own.
    // With a problem nothing is offered: a name that cannot be offered, said for a person.
    struct Made;
    [[nodiscard]] static Made make(
        const config::Config& config, const std::vector<std::string>& names
    );

    // Nothing of the configuration is offered.
    [[nodiscard]] bool empty() const { return tools_.size() <= 1; }
    [[nodiscard]] const OfferedTool* find(std::string_view name) const;
    // The tool of an operation is offered, or is a compensation of one that is.
    [[nodiscard]] bool covers(std::string_view tool) const;

    // A page of tools/list behind the cursor, in the order of the names; empty: no such cursor.
    [[nodiscard]] std::optional<outbox::Json> page(const outbox::Json* cursor) const;
    static constexpr std::size_t kPage = 100;

 private:
    std::vector<OfferedTool> tools_;  // by name
};

struct Offer::Made {
    std::unique_ptr<const Offer> offer;
    std::string problem;
};

}  // namespace outboxd::mcp
