#include "daemon/cli.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <ostream>

#include "config/load.hpp"
#include "daemon/command.hpp"
#include "daemon/embedded_postgres.hpp"
#include "daemon/text.hpp"
#include "daemon/version.hpp"
#include "outbox/pg/client.hpp"
#include "outbox/pg/pg_error.hpp"
#include "outbox/store.hpp"
#include "tools/toolset.hpp"

namespace outboxd {
namespace {

// What the server refused: bad input is a mistake of usage, a missing schema has its own code,
// everything else (OB404, OB422, …) is a "no".
ExitCode code_of(const std::string& sqlstate) {
    if (sqlstate == "OB400" || sqlstate == "OB413" || sqlstate.starts_with("22")) return kUsage;
    // No schema, no table, no function: not migrated, or by a much older version.
    if (sqlstate == "3F000" || sqlstate == "42P01" || sqlstate == "42883") return kSchemaMismatch;
    return kNo;
}

ExitCode report(const outbox::StoreError& error, Console console) {
    if (dynamic_cast<const outbox::pg::SchemaMismatch*>(&error) != nullptr) {
        console.err << "outboxd: " << error.what() << '\n';
        return kSchemaMismatch;
    }
    const auto* sql = dynamic_cast<const outbox::pg::SqlError*>(&error);
    if (sql == nullptr || error.kind() == outbox::StoreError::Kind::unavailable) {
        console.err << "outboxd: " << error.what() << '\n';
        return error.kind() == outbox::StoreError::Kind::unavailable ? kDatabaseUnreachable : kNo;
    }
    const ExitCode code = code_of(sql->sqlstate());
    console.err << fmt::format("outboxd: {} ({})\n", sql->message(), sql->sqlstate());
    if (!sql->detail().empty()) console.err << "  detail: " << sql->detail() << '\n';
    std::string hint = code == kSchemaMismatch ? "run: outboxd migrate" : sql->hint();
    if (sql->sqlstate() == "42501") {
        hint =
            "as an owner of the schema: GRANT outbox_planner TO this role (to enqueue), or "
            "outbox_reader (to look), or outbox_operator (to steer)";
    }
    if (!hint.empty()) console.err << "  hint: " << hint << '\n';
    return code;
}

int run_command(Context& context) {
    try {
        return context.command();
    } catch (const CommandError& error) {
        context.console.err << "outboxd: " << error.what() << '\n';
        return error.code();
    } catch (const ConfigurationError& error) {
        for (const auto& diagnostic : error.diagnostics().all()) {
            context.console.err << config::to_text(diagnostic) << '\n';
        }
        return kConfiguration;
    } catch (const EmbeddedPostgresError& error) {
        context.console.err << "outboxd: " << error.what() << '\n';
        return kDatabaseUnreachable;
    } catch (const outbox::StoreError& error) {
        return report(error, context.console);
    } catch (const std::exception& error) {
        context.console.err << "outboxd: this should not happen: " << error.what() << '\n';
        return kNo;
    }
}

// `outboxd frobnicate --help`: CLI11 answers with the whole help, as if nothing were wrong.
std::optional<std::string> unknown_command(const CLI::App& app) {
    if (!app.get_subcommands().empty()) return std::nullopt;
    for (const auto& word : app.remaining()) {
        if (!word.starts_with("-")) return word;
    }
    return std::nullopt;
}

// What CLI11 says about a mistake, and where to look next.
int report(const CLI::App& app, const CLI::ParseError& error, Console console) {
    if (error.get_exit_code() == 0) {  // --help, --version
        app.exit(error, console.out, console.err);
        return kDone;
    }
    const auto chosen = app.get_subcommands();
    const auto left = app.remaining();
    if (chosen.empty() && !left.empty()) {
        console.err << "outboxd: no such command: " << printable(left.front()) << '\n';
    } else {
        console.err << "outboxd: " << error.what() << '\n';
    }
    console.err << fmt::format(
        "Try: outboxd {}--help\n", chosen.empty() ? "" : chosen.front()->get_name() + " "
    );
    return kUsage;
}

}  // namespace

void add_database_option(CLI::App& command, Context& context) {
    command
        .add_option(
            "--database",
            context.database,
            "Database (libpq keywords or URI); else OUTBOXD_DATABASE, else the configuration's"
        )
        ->type_name("DSN");
    command
        .add_option(
            "--source", context.source, "Which of the configuration's database.sources (with -c)"
        )
        ->type_name("NAME");
}

void add_config_option(CLI::App& command, Context& context) {
    command.add_option("-c,--config", context.config_file, "Configuration file")->type_name("FILE");
}

void add_json_option(CLI::App& command, Context& context) {
    command.add_flag("--json", context.json, "JSON: one document, or one a line for lists");
}

void add_shared_options(CLI::App& command, Context& context) {
    add_config_option(command, context);
    add_database_option(command, context);
    add_json_option(command, context);
}

namespace {

std::string names_of(const config::Database& database) {
    std::string names;
    for (const auto& source : database.sources) {
        names += (names.empty() ? "" : ", ") + printable(source.name);
    }
    return names;
}

std::string not_blank(const std::string& text) {
    return text.find_first_not_of(" \t\r\n") == std::string::npos ? "it is blank" : "";
}

}  // namespace

CLI::Option* add_reason_option(CLI::App& command, std::string& reason) {
    return command.add_option("--reason", reason, "Why; it is kept")
        ->type_name("TEXT")
        ->check(not_blank);
}

CLI::Option* add_actor_option(CLI::App& command, std::string& actor) {
    return command.add_option("--actor", actor, "Who says so; it is kept")
        ->type_name("NAME")
        ->check(not_blank);
}

std::string given_database(const Context& context) {
    if (!context.database.empty()) return context.database;
    const char* variable = std::getenv("OUTBOXD_DATABASE");
    return variable == nullptr ? "" : variable;
}

std::vector<NamedDatabase> databases_of(const Context& context) {
    if (!context.source.empty() && !context.database.empty()) {
        throw CommandError(kUsage, "--source and --database exclude each other");
    }
    const auto given = given_database(context);
    if (context.source.empty() && !given.empty()) return {{.source = "", .dsn = given}};
    if (context.config_file.empty()) {
        throw CommandError(
            kUsage,
            context.source.empty()
                ? "which database? Give --database DSN, set OUTBOXD_DATABASE, or name a file with "
                  "-c"
                : "--source names one of a configuration's: name the file with -c"
        );
    }
    const auto database = load_config(context, context.config_file).config.database;
    if (!context.source.empty()) {
        const auto* source = database.find(context.source);
        if (source == nullptr) {
            throw CommandError(
                kUsage,
                fmt::format(
                    "{} has no source {}{}",
                    context.config_file,
                    printable(context.source),
                    database.sources.empty() ? ": it has one database"
                                             : ", only " + names_of(database)
                )
            );
        }
        return {{.source = source->name, .dsn = source->dsn.value}};
    }
    if (database.embedded) {
        return {{.source = "", .dsn = embedded_dsn(database.embedded->data_dir)}};
    }
    if (database.sources.empty()) return {{.source = "", .dsn = database.dsn.value}};
    std::vector<NamedDatabase> all;
    for (const auto& source : database.sources) all.push_back({source.name, source.dsn.value});
    return all;
}

std::string database_of(const Context& context) {
    const auto all = databases_of(context);
    if (all.size() == 1) return all.front().dsn;
    std::string names;
    for (const auto& one : all) names += (names.empty() ? "" : ", ") + one.source;
    throw CommandError(
        kUsage,
        fmt::format("which database? Add --source NAME: {} has {}", context.config_file, names)
    );
}

void check_tools(config::Loaded& loaded) {
    const auto& config = loaded.config ? loaded.config : loaded.partial;
    if (config) tools::check_toolset(*config, loaded.diagnostics);
    loaded.diagnostics.sort();
}

LoadedConfig load_config(const Context& context, const std::string& file) {
    if (!context.database.empty()) setenv("OUTBOXD_DATABASE", context.database.c_str(), 1);
    auto loaded = config::load(file);
    if (!loaded.config) {
        check_tools(loaded);
        throw ConfigurationError(std::move(loaded.diagnostics));
    }
    return {std::move(*loaded.config), std::move(loaded.diagnostics)};
}

int run_cli(const std::vector<std::string>& arguments, Console console) {
    std::signal(SIGPIPE, SIG_IGN);
    Context context{console, "", "", "", false, nullptr};
    CLI::App app("outboxd: one planner step commits at most one side effect", "outboxd");
    app.set_version_flag("--version", std::string("outboxd ") + kVersion);
    app.require_subcommand(1);
    app.get_formatter()->column_width(32);
    add_database_option(app, context);
    app.footer(
        "Exit codes: 0 done, 1 the answer is no, 2 usage, 3 configuration,\n"
        "4 database unreachable, 5 schema too old or too new.\n\n"
        "Example:\n  outboxd dev"
    );
    add_daemon_commands(app, context);
    add_schema_commands(app, context);
    add_config_commands(app, context);
    add_render_command(app, context);
    add_key_command(app, context);
    add_enqueue_command(app, context);
    add_compensate_command(app, context);
    add_reading_commands(app, context);
    add_resolve_command(app, context);
    add_bulk_commands(app, context);
    add_steering_commands(app, context);
    add_retention_commands(app, context);
    add_doctor_command(app, context);
    add_mcp_command(app, context);
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    } catch (const CLI::CallForHelp& error) {
        if (auto unknown = unknown_command(app)) {
            return report(app, CLI::ExtrasError({*unknown}), console);
        }
        return report(app, error, console);
    } catch (const CLI::ParseError& error) {
        return report(app, error, console);
    }
    return run_command(context);
}

}  // namespace outboxd
