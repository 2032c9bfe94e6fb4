#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/reader.hpp"

// One function per section of the file; load.cpp calls them in order. Each reads all it can and
// reports what is wrong with the rest. Nothing outside config/ includes this.
namespace config {

inline constexpr Range<Duration> kTimeouts{10ms, 24h};
inline constexpr Range<Duration> kHorizons{10ms, std::chrono::hours{24 * 365}};

// settings.cpp
void read_database(MapReader& root, Database& out);
void read_worker(MapReader& root, Worker& out);
void read_log(MapReader& root, LogSettings& out);
void read_limits(MapReader& root, Limits& out);
void read_retention(MapReader& root, Retention& out);
void read_testing(MapReader& root, Config& out);

// admin.cpp
void read_admin(MapReader& root, Admin& out);
void read_mcp_face(MapReader& root, McpFace& out);

// policies.cpp
void read_defaults(MapReader& root, Defaults& out);
void read_timeouts(MapReader& in, Duration& timeout, Duration& connect_timeout);
void read_retry(MapReader& in, Retry& out);
void read_http_settings(MapReader& in, Http& out);
void read_reconcile_policy(MapReader& in, Reconcile& out);

// proxy.cpp
void read_proxy(MapReader& in, Http& out);

// key.cpp
void read_key(MapReader& in, Key& out);

// credentials.cpp: the names, those that could not be read included.
[[nodiscard]] std::vector<std::string> read_credentials(MapReader& root, Config& out);

// tests.cpp; behind the tools, which they name.
void read_tests(MapReader& root, Config& out);

// What tools may refer to.
struct ToolContext {
    const Defaults& defaults;
    const std::vector<std::string>& credentials;
};

enum class Phase { execute, reconcile };

// rules.cpp: outcomes of execute, verdicts of reconcile.
[[nodiscard]] std::string_view rules_key(Phase phase);
void read_rules(MapReader& in, Phase phase, std::vector<Rule>& out, bool& has_rules);
// A `then:` of that phase; reported otherwise.
void check_then(const Text& then, std::string_view path, Phase phase, Diagnostics& diagnostics);

// http.cpp, command.cpp, sql.cpp and mcp.cpp read the members of a request out of the mapping it
// stands in.
[[nodiscard]] HttpRequest read_http(MapReader& in, Phase phase, const ToolContext& context);
[[nodiscard]] Command read_command(MapReader& in, Phase phase);
[[nodiscard]] Sql read_sql(MapReader& in, Phase phase);
[[nodiscard]] Mcp read_mcp(MapReader& in, Phase phase, const ToolContext& context);
// Parts of them: url and credentials; items, match, …; the program under `key` and what it gets.
[[nodiscard]] HttpRequest read_address(MapReader& in, const ToolContext& context);
void read_listing(MapReader& in, bool has_rules, Listing& out);
[[nodiscard]] Command read_program(MapReader& in, std::string_view key);

// action.cpp: the type and what belongs to it; false when the type is not known, so that the
// other members cannot be judged.
[[nodiscard]] bool read_execute(MapReader& in, Tool& tool, const ToolContext& context);
void read_reconcile(MapReader& in, Tool& tool, const ToolContext& context);

// tools.cpp
void read_tools(MapReader& root, Config& out, const ToolContext& context);

// A name for tools, compensations and credentials: reported when it is no good.
bool check_name(
    const Value::Member& member, std::string_view what, std::size_t max, Diagnostics& diagnostics
);

}  // namespace config
