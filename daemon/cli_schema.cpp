#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/command.hpp"
#include "daemon/text.hpp"
#include "outbox/json.hpp"
#include "outbox/pg/migrator.hpp"

namespace outboxd {
namespace {

outbox::Json to_json(const std::vector<std::string>& texts) {
    outbox::Json::Array all;
    for (const auto& text : texts) all.push_back(outbox::Json(text));
    return outbox::Json(std::move(all));
}

// The statements that make up for roles which the one who migrates may not create.
std::vector<std::string> statements_for(const std::vector<std::string>& missing) {
    std::vector<std::string> statements;
    for (const auto& role : missing) statements.push_back("CREATE ROLE " + role + " NOLOGIN;");
    if (!missing.empty()) statements.push_back("SELECT outbox.grant_rights();");
    return statements;
}

// On stderr, with exit code 0: the schema is complete, and who has no role has no rights.
void warn_of(const std::vector<std::string>& missing, Console console) {
    if (missing.empty()) return;
    const auto statements = statements_for(missing);
    console.err << "outboxd: warning: these roles do not exist and could not be created: ";
    for (const auto& role : missing) console.err << (&role == &missing[0] ? "" : ", ") << role;
    console.err << "\n  hint: a role that may create roles runs\n";
    for (std::size_t i = 0; i + 1 < statements.size(); ++i) {
        console.err << "    " << statements[i] << '\n';
    }
    console.err << "  then the owner of the schema outbox runs\n    " << statements.back() << '\n';
}

// With several sources each line, or document, says which.
void migrate(Context& context, const NamedDatabase& database, bool dry_run) {
    const auto& dsn = database.dsn;
    const auto label = database.source.empty() ? "" : printable(database.source) + ": ";
    const auto state = outbox::pg::schema_state(dsn);
    using Fit = outbox::pg::SchemaFit;
    if (state.fit == Fit::too_new || state.fit == Fit::altered) {
        throw CommandError(kSchemaMismatch, label + state.message);
    }
    std::vector<std::string> applied;
    std::vector<std::string> missing;
    if (!dry_run) {
        applied = outbox::pg::migrate(dsn);
        missing = outbox::pg::missing_roles(dsn);
    }
    if (context.json) {
        outbox::Json document;
        if (!database.source.empty()) document.set("source", database.source);
        document.set("dry_run", dry_run);
        document.set("pending", to_json(dry_run ? state.pending : std::vector<std::string>{}));
        document.set("applied", to_json(applied));
        document.set("missing_roles", to_json(missing));
        document.set("statements", to_json(statements_for(missing)));
        context.console.out << outbox::to_text(document) << '\n';
        return;
    }
    auto& out = context.console.out;
    if (dry_run) {
        for (const auto& name : state.pending) out << label << "pending " << name << '\n';
    }
    for (const auto& name : applied) out << label << "applied " << name << '\n';
    if (state.pending.empty()) out << label << "nothing to apply\n";
    warn_of(missing, context.console);
}

// One that cannot be reached does not keep the others from it; the exit code is the first one's.
int migrate_all(Context& context, bool dry_run) {
    const auto databases = databases_of(context);
    std::exception_ptr first;
    for (const auto& database : databases) {
        try {
            migrate(context, database, dry_run);
        } catch (const std::exception& error) {
            if (databases.size() == 1) throw;
            context.console.err << "outboxd: " << printable(database.source) << ": "
                                << printable(error.what()) << '\n';
            if (!first) first = std::current_exception();
        }
    }
    if (first) std::rethrow_exception(first);
    return kDone;
}

}  // namespace

void add_schema_commands(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand(
        "migrate", "Bring the database's schema up to this version; forward only"
    );
    auto dry_run = std::make_shared<bool>(false);
    command->add_flag("--dry-run", *dry_run, "Only list what is pending");
    add_shared_options(*command, context);
    command->footer("Example:\n  outboxd migrate --database postgresql://localhost/app --dry-run");
    command->callback([&context, dry_run] {
        context.command = [&context, dry_run] { return migrate_all(context, *dry_run); };
    });
}

}  // namespace outboxd
