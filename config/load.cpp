#include "config/load.hpp"

#include <fmt/format.h>

#include <exception>
#include <memory>

#include "config/sections.hpp"
#include "config/source.hpp"

namespace config {
namespace {

void read_version(MapReader& root) {
    const auto* version = root.require("version", "begin the file with version: 1");
    if (!version || version->value.unresolved || version->value.text == "1") return;
    root.error(
        version->value,
        "version",
        fmt::format("{} is not a version this outboxd reads", shown(version->value)),
        "write version: 1"
    );
}

Config read_config(const Value& tree, const std::string& file, Diagnostics& diagnostics) {
    Config config;
    config.file = file;
    const Mark top{tree.mark.file, 1, 1};
    MapReader root(&tree, top, "", diagnostics);
    read_version(root);
    root.know({"include"});
    read_database(root, config.database);
    read_worker(root, config.worker);
    read_admin(root, config.admin);
    read_mcp_face(root, config.mcp);
    read_log(root, config.log);
    read_limits(root, config.limits);
    read_retention(root, config.retention);
    read_defaults(root, config.defaults);
    const auto credentials = read_credentials(root, config);
    read_tools(root, config, {config.defaults, credentials});
    read_testing(root, config);
    read_tests(root, config);
    root.finish();
    return config;
}

}  // namespace

Loaded load(const std::string& file, const LoadOptions& options) {
    Loaded loaded;
    auto& diagnostics = loaded.diagnostics;
    try {
        if (auto tree = read_tree(file, options, diagnostics)) {
            auto config = read_config(*tree, file, diagnostics);
            (diagnostics.has_errors() ? loaded.partial : loaded.config) = std::move(config);
        }
    } catch (const std::exception& e) {
        const Mark mark{std::make_shared<const std::string>(file), 0, 0};
        diagnostics.error(mark, fmt::format("cannot load the configuration: {}", e.what()));
    }
    diagnostics.sort();
    return loaded;
}

}  // namespace config
