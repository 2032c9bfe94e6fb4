#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "config/emit.hpp"
#include "config/load.hpp"
#include "daemon/command.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/json.hpp"
#include "tools/config_test_run.hpp"

namespace outboxd {
namespace {

struct CheckOptions {
    std::string file;
    bool strict = false;
    bool tests = false;
};

outbox::Json place_of(const config::Mark& mark) {
    outbox::Json out;
    out.set("file", outbox::Json(mark.file ? *mark.file : std::string()));
    out.set("line", outbox::Json(mark.line));
    out.set("column", outbox::Json(mark.column));
    return out;
}

outbox::Json to_json(const tools::TestResult& result) {
    auto out = place_of(result.mark);
    out.set("test", outbox::Json(result.name));
    out.set("tool", outbox::Json(result.tool));
    out.set("ok", outbox::Json(result.failures.empty()));
    out.set("checks", outbox::Json(result.checks));
    outbox::Json::Array failures;
    for (const auto& failure : result.failures) {
        auto one = place_of(failure.mark);
        one.set("what", outbox::Json(failure.what));
        one.set("expected", outbox::Json(failure.expected));
        one.set("got", outbox::Json(failure.got));
        failures.push_back(std::move(one));
    }
    out.set("failures", outbox::Json(std::move(failures)));
    return out;
}

// Multi-line texts are moved in, so that it stays visible where each ends.
std::string indented(const std::string& text) {
    std::string out;
    for (const char c : text) {
        out += c;
        if (c == '\n') out += "            ";
    }
    return out;
}

void report(const tools::TestResult& result, Console console) {
    const bool ok = result.failures.empty();
    console.out << fmt::format(
        "{} {} ({}, {} {})\n",
        ok ? "ok    " : "FAILED",
        result.name,
        result.tool,
        result.checks,
        result.checks == 1 ? "check" : "checks"
    );
    for (const auto& failure : result.failures) {
        config::Diagnostic place{
            config::Severity::error,
            failure.mark,
            fmt::format("{}: {} is not as expected", result.name, failure.what),
            {}
        };
        console.err << fmt::format(
            "{}\n  expected: {}\n  got:      {}\n",
            config::to_text(place),
            indented(failure.expected),
            indented(failure.got)
        );
    }
}

// A file whose tests went missing must not look like one whose tests pass.
int run_tests(Context& context, const config::Config& config) {
    const auto results = tools::run_config_tests(config);
    std::size_t failed = 0;
    for (const auto& result : results) {
        if (!result.failures.empty()) ++failed;
        if (context.json) {
            context.console.out << outbox::to_text(to_json(result)) << '\n';
        } else {
            report(result, context.console);
        }
    }
    if (results.empty()) {
        context.console.err << "outboxd: the file has no tests:\n";
        return kNo;
    }
    if (!context.json) {
        context.console.out << fmt::format("{} tests, {} failed\n", results.size(), failed);
    }
    return failed == 0 ? kDone : kNo;
}

// The file as an argument or as -c; both or neither is a mistake of usage.
std::string chosen_file(const Context& context, const std::string& argument) {
    if (argument.empty() == context.config_file.empty()) {
        throw CommandError(kUsage, "name one configuration file");
    }
    return argument.empty() ? context.config_file : argument;
}

// The line behind the diagnostics: no diagnostics, and no output at all, are two things.
void print_verdict(const Context& context, std::int64_t errors, std::int64_t warnings) {
    outbox::Json line;
    line.set("ok", errors == 0);
    line.set("errors", errors);
    line.set("warnings", warnings);
    context.console.out << outbox::to_text(line) << '\n';
}

int check_config(Context& context, const CheckOptions& options) {
    auto loaded = config::load(chosen_file(context, options.file));
    check_tools(loaded);
    std::int64_t errors = 0;
    for (auto diagnostic : loaded.diagnostics.all()) {
        if (options.strict) diagnostic.severity = config::Severity::error;
        if (diagnostic.severity == config::Severity::error) ++errors;
        if (context.json) {
            context.console.out << config::to_json(diagnostic) << '\n';
        } else {
            context.console.err << config::to_text(diagnostic) << '\n';
        }
    }
    const auto warnings = static_cast<std::int64_t>(loaded.diagnostics.all().size()) - errors;
    if (context.json) print_verdict(context, errors, warnings);
    if (errors > 0) return kConfiguration;
    if (options.tests) return run_tests(context, *loaded.config);
    if (!context.json) context.console.out << "ok\n";
    return kDone;
}

int print_config(Context& context, const std::string& argument) {
    const auto config = load_config(context, chosen_file(context, argument)).config;
    if (context.json) {
        context.console.out << config::to_json(config::effective(config)) << '\n';
    } else {
        context.console.out << config::print(config);
    }
    return kDone;
}

int list_failpoints(Context& context) {
    for (const char* name : outbox::kFailpointNames) {
        if (context.json) {
            outbox::Json line;
            line.set("name", name);
            context.console.out << outbox::to_text(line) << '\n';
        } else {
            context.console.out << name << '\n';
        }
    }
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
    check->add_flag(
        "--tests", check_options->tests, "Run tests: too, without any network; exit 1: one failed"
    );
    check->add_flag(
        "--json",
        context.json,
        "Diagnostics, whether it is ok, and tests as JSON, one a line, to stdout"
    );
    check->footer("Example:\n  outboxd check-config --strict --tests outboxd.yaml");
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
    add_shared_options(*print, context);
    print->footer("Example:\n  outboxd print-config outboxd.yaml");
    print->callback([&context, file] {
        context.command = [&context, file] { return print_config(context, *file); };
    });

    auto* failpoints = app.add_subcommand(
        "list-failpoints", "Print the names OUTBOXD_FAILPOINTS takes (testing.allow_failpoints)"
    );
    add_json_option(*failpoints, context);
    failpoints->footer(
        "Example:\n  OUTBOXD_FAILPOINTS=before_complete=crash outboxd run -c test.yaml"
    );
    failpoints->callback([&context] {
        context.command = [&context] { return list_failpoints(context); };
    });
}

}  // namespace outboxd
