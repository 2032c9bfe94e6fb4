// What a reload cannot change.
#include <algorithm>
#include <string>
#include <utility>

#include "daemon/app.hpp"

namespace outboxd {
namespace {

bool same_sources(const config::Database& a, const config::Database& b) {
    const auto same = [](const config::Source& one, const config::Source& other) {
        return one.name == other.name && one.dsn.value == other.dsn.value;
    };
    return std::equal(a.sources.begin(), a.sources.end(), b.sources.begin(), b.sources.end(), same);
}

}  // namespace

// Some settings belong to the process; changing them needs a new one.
void App::warn_of_restart(const config::Config& config) {
    const auto& old = options_.config;
    const auto warn = [&](bool changed, std::string key) {
        if (changed) log_.warn("this setting takes a restart to change", {{"key", std::move(key)}});
    };
    warn(!same_sources(config.database, old.database), "database.sources");
    warn(config.database.dsn.value != old.database.dsn.value, "database.dsn");
    warn(config.database.key_namespace != old.database.key_namespace, "database.namespace");
    warn(
        config.admin.host != old.admin.host || config.admin.port != old.admin.port, "admin.listen"
    );
    warn(config.admin.hosts != old.admin.hosts, "admin.hosts");
    warn(config.admin.token_file != old.admin.token_file, "admin.token_file");
    warn(config.mcp.token_file != old.mcp.token_file, "mcp.token_file");
    warn(config.log.format != old.log.format, "log.format");
}

}  // namespace outboxd
