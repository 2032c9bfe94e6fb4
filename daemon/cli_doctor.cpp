#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "daemon/text.hpp"
#include "outbox/pg/doctor.hpp"
#include "outbox/store.hpp"

namespace outboxd {
namespace {

using outbox::pg::Finding;

// What the catalogue does not tell: whether a write tool sends the provider anything to know a
// second request by. The compiler of the configuration warns of it.
Finding provider_keys(const Context& context) {
    Finding finding{.name = "provider_keys", .level = "ok", .detail = "", .fix = std::nullopt};
    if (context.config_file.empty()) {
        finding.level = "warn";
        finding.detail = "not looked at: that takes the configuration";
        finding.fix = "outboxd doctor -c FILE";
        return finding;
    }
    auto loaded = config::load(context.config_file);
    check_tools(loaded);
    if (!loaded.config) throw ConfigurationError(std::move(loaded.diagnostics));
    std::string tools;
    for (const auto& diagnostic : loaded.diagnostics.all()) {
        const auto at = diagnostic.message.rfind(": no idempotency key is sent");
        if (at == std::string::npos) continue;
        tools += (tools.empty() ? "" : ", ") + diagnostic.message.substr(0, at);
    }
    if (tools.empty()) {
        finding.detail = "every http tool that writes sends the provider a key";
        return finding;
    }
    finding.level = "warn";
    finding.detail = "no idempotency key is sent by " + tools;
    finding.fix =
        "headers: { Idempotency-Key: \"{{ operation.key }}\" }, or plant {{ operation.key }} "
        "in the request: it closes what a frozen process leaves open";
    return finding;
}

void print_lines(std::ostream& out, const std::vector<Finding>& findings) {
    for (const auto& finding : findings) {
        out << fmt::format(
            "{:<5} {:<21} {}\n", finding.level, finding.name, printable(finding.detail)
        );
        if (finding.fix) out << fmt::format("      {:<21} → {}\n", "", printable(*finding.fix));
    }
}

// What was found in one of several sources; source empty: in the configuration, or the only one.
struct Examined {
    std::string source;
    std::vector<Finding> findings;
};

void print(const Context& context, const std::vector<Examined>& all, bool several, bool ok) {
    auto& out = context.console.out;
    if (context.json) {
        outbox::Json::Array checks;
        for (const auto& [source, findings] : all) {
            for (const auto& finding : findings) {
                outbox::Json check;
                if (several) {
                    check.set("source", source.empty() ? outbox::Json() : outbox::Json(source));
                }
                check.set("name", finding.name);
                check.set("level", finding.level);
                check.set("detail", finding.detail);
                check.set("fix", finding.fix ? outbox::Json(*finding.fix) : outbox::Json());
                checks.push_back(std::move(check));
            }
        }
        outbox::Json document;
        document.set("ok", ok);
        document.set("checks", std::move(checks));
        out << outbox::to_text(document) << '\n';
        return;
    }
    for (const auto& [source, findings] : all) {
        if (several) out << (source.empty() ? "configuration" : printable(source)) << '\n';
        print_lines(out, findings);
    }
}

// One of several that cannot be asked is a finding: the others are of interest all the more.
std::vector<Finding> examine(const NamedDatabase& database, bool several) {
    try {
        return outbox::pg::examine(database.dsn);
    } catch (const outbox::StoreError& error) {
        if (!several) throw;
        return {
            {.name = "reachable",
             .level = "bad",
             .detail = error.what(),
             .fix = "is the server up, and are dsn and pg_hba.conf right?"}
        };
    }
}

int doctor(Context& context) {
    const auto databases = databases_of(context);
    const auto keys = provider_keys(context);
    std::vector<Examined> all;
    const bool several = databases.size() > 1;
    for (const auto& one : databases) all.push_back({one.source, examine(one, several)});
    if (several) all.push_back({});
    all.back().findings.push_back(keys);
    bool ok = true;
    for (const auto& [source, findings] : all) {
        for (const auto& finding : findings) ok = ok && finding.level != "bad";
    }
    print(context, all, several, ok);
    return ok ? kDone : kNo;
}

}  // namespace

void add_doctor_command(CLI::App& app, Context& context) {
    auto* command =
        app.add_subcommand("doctor", "Check what the promises rest on, each with the way out");
    add_shared_options(*command, context);
    command->footer(
        "One line for each check: ok, warn or bad; exit 1 when anything is bad. Nothing is "
        "changed.\n"
        "With -c the tools' idempotency keys are looked at, too.\n\n"
        "Examples:\n"
        "  outboxd doctor -c outboxd.yaml\n"
        "  outboxd doctor --json"
    );
    command->callback([&context] { context.command = [&context] { return doctor(context); }; });
}

}  // namespace outboxd
