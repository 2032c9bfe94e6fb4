#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/diagnostics.hpp"
#include "config/load.hpp"
#include "daemon/cli.hpp"
#include "daemon/exit_code.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace outboxd {

// Ends a command with this exit code; the message goes to stderr.
class CommandError : public std::runtime_error {
 public:
    CommandError(ExitCode code, const std::string& message)
        : std::runtime_error(message), code_(code) {}
    [[nodiscard]] ExitCode code() const { return code_; }

 private:
    ExitCode code_;
};

// A configuration that does not load: every diagnostic goes to stderr, exit 3.
class ConfigurationError : public std::runtime_error {
 public:
    explicit ConfigurationError(config::Diagnostics diagnostics)
        : std::runtime_error("the configuration has errors"),
          diagnostics_(std::move(diagnostics)) {}
    [[nodiscard]] const config::Diagnostics& diagnostics() const { return diagnostics_; }

 private:
    config::Diagnostics diagnostics_;
};

// What every command may use. Parsing fills it and chooses the command; then the command runs.
struct Context {
    Console console;
    std::string database;     // --database; empty: not given
    std::string source;       // --source, one of the configuration's; empty: not given
    std::string config_file;  // -c; empty: not given
    bool json = false;
    std::function<int()> command;
};

// Each adds its group of commands to the command line.
void add_daemon_commands(CLI::App& app, Context& context);
void add_schema_commands(CLI::App& app, Context& context);
void add_config_commands(CLI::App& app, Context& context);
void add_render_command(CLI::App& app, Context& context);
void add_key_command(CLI::App& app, Context& context);
void add_enqueue_command(CLI::App& app, Context& context);
void add_compensate_command(CLI::App& app, Context& context);
void add_reading_commands(CLI::App& app, Context& context);
void add_steering_commands(CLI::App& app, Context& context);
void add_bulk_commands(CLI::App& app, Context& context);
void add_resolve_command(CLI::App& app, Context& context);
void add_retention_commands(CLI::App& app, Context& context);
void add_doctor_command(CLI::App& app, Context& context);
void add_mcp_command(CLI::App& app, Context& context);

// Options that several commands share.
void add_database_option(CLI::App& command, Context& context);
void add_config_option(CLI::App& command, Context& context);
void add_json_option(CLI::App& command, Context& context);
// The three of them.
void add_shared_options(CLI::App& command, Context& context);
// --reason and --actor, which are kept; blank ones are refused.
CLI::Option* add_reason_option(CLI::App& command, std::string& reason);
CLI::Option* add_actor_option(CLI::App& command, std::string& actor);

// --source, else --database, else OUTBOXD_DATABASE, else the configuration's; throws when there is
// none, or more than one.
[[nodiscard]] std::string database_of(const Context& context);
// For commands that may do the same for each of several sources. Source: empty where there is one.
struct NamedDatabase {
    std::string source;
    std::string dsn;
};
[[nodiscard]] std::vector<NamedDatabase> databases_of(const Context& context);
// The same without the configuration; empty when there is none.
[[nodiscard]] std::string given_database(const Context& context);

// Loads the file; throws ConfigurationError. A database given on the command line counts as
// OUTBOXD_DATABASE in the file.
struct LoadedConfig {
    config::Config config;
    config::Diagnostics diagnostics;  // warnings
};
// Compiles the tools of what could be read, so that their mistakes are told together with the rest.
void check_tools(config::Loaded& loaded);

[[nodiscard]] LoadedConfig load_config(const Context& context, const std::string& file);

}  // namespace outboxd
