#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "daemon/command.hpp"
#include "outbox/pg/migrator.hpp"

namespace outboxd {
namespace {

int migrate(Context& context, bool dry_run) {
    const std::string dsn = database_of(context);
    const auto state = outbox::pg::schema_state(dsn);
    using Fit = outbox::pg::SchemaFit;
    if (state.fit == Fit::too_new || state.fit == Fit::altered) {
        throw CommandError(kSchemaMismatch, state.message);
    }
    if (dry_run) {
        for (const auto& name : state.pending) context.console.out << "pending " << name << '\n';
    } else {
        for (const auto& name : outbox::pg::migrate(dsn)) {
            context.console.out << "applied " << name << '\n';
        }
    }
    if (state.pending.empty()) context.console.out << "nothing to apply\n";
    return kDone;
}

}  // namespace

void add_schema_commands(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand(
        "migrate", "Bring the database's schema up to this version; forward only"
    );
    auto dry_run = std::make_shared<bool>(false);
    command->add_flag("--dry-run", *dry_run, "Only list what is pending");
    add_config_option(*command, context);
    add_database_option(*command, context);
    command->footer("Example:\n  outboxd migrate --database postgresql://localhost/app --dry-run");
    command->callback([&context, dry_run] {
        context.command = [&context, dry_run] { return migrate(context, *dry_run); };
    });
}

}  // namespace outboxd
