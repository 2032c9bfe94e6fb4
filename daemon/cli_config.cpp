#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "config/load.hpp"
#include "daemon/command.hpp"
#include "outbox/failpoint.hpp"

namespace outboxd {
namespace {

struct CheckOptions {
    std::string file;
    bool strict = false;
};

// The file as an argument or as -c; both or neither is a mistake of usage.
std::string chosen_file(const Context& context, const std::string& argument) {
    if (argument.empty() == context.config_file.empty()) {
        throw CommandError(kUsage, "name one configuration file");
    }
    return argument.empty() ? context.config_file : argument;
}

int check_config(Context& context, const CheckOptions& options) {
    auto loaded = config::load(chosen_file(context, options.file));
    check_tools(loaded);
    bool wrong = loaded.diagnostics.has_errors();
    for (auto diagnostic : loaded.diagnostics.all()) {
        if (options.strict && diagnostic.severity == config::Severity::warning) {
            diagnostic.severity = config::Severity::error;
            wrong = true;
        }
        if (context.json) {
            context.console.out << config::to_json(diagnostic) << '\n';
        } else {
            context.console.err << config::to_text(diagnostic) << '\n';
        }
    }
    if (wrong) return kConfiguration;
    if (!context.json) context.console.out << "ok\n";
    return kDone;
}

int print_config(Context& context, const std::string& argument) {
    context.console.out << config::print(load_config(context, chosen_file(context, argument)).config
    );
    return kDone;
}

}  // namespace

void add_config_commands(CLI::App& app, Context& context) {
    auto* check =
        app.add_subcommand("check-config", "Report every mistake of a configuration file at once");
    auto check_options = std::make_shared<CheckOptions>();
    check->add_option("file", check_options->file, "Configuration file")->type_name("FILE");
    add_config_option(*check, context);
    add_database_option(*check, context);
    check->add_flag("--strict", check_options->strict, "Warnings are errors");
    check->add_flag("--json", context.json, "Diagnostics as JSON, one a line, to stdout");
    check->footer("Example:\n  outboxd check-config --strict outboxd.yaml");
    check->callback([&context, check_options] {
        context.command = [&context, check_options] {
            return check_config(context, *check_options);
        };
    });

    auto* print = app.add_subcommand(
        "print-config",
        "Print the effective configuration, every default spelled out, secrets masked"
    );
    auto file = std::make_shared<std::string>();
    print->add_option("file", *file, "Configuration file")->type_name("FILE");
    add_config_option(*print, context);
    add_database_option(*print, context);
    print->footer("Example:\n  outboxd print-config outboxd.yaml");
    print->callback([&context, file] {
        context.command = [&context, file] { return print_config(context, *file); };
    });

    auto* failpoints = app.add_subcommand(
        "list-failpoints", "Print the names OUTBOXD_FAILPOINTS takes (testing.allow_failpoints)"
    );
    failpoints->footer(
        "Example:\n  OUTBOXD_FAILPOINTS=before_complete=crash outboxd run -c test.yaml"
    );
    failpoints->callback([&context] {
        context.command = [&context]() -> int {
            for (const char* name : outbox::kFailpointNames) context.console.out << name << '\n';
            return kDone;
        };
    });
}

}  // namespace outboxd
