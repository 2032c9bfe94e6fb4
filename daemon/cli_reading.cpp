#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/command.hpp"
#include "daemon/filter.hpp"
#include "daemon/output.hpp"
#include "daemon/text.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

std::vector<outbox::Json> rows_of(const std::vector<std::string>& texts) {
    std::vector<outbox::Json> rows;
    for (const auto& text : texts) rows.push_back(row_of(text));
    return rows;
}

int not_found(const Context& context, const std::string& id) {
    context.console.err << "outboxd: no operation " << printable(id) << '\n';
    return kNo;
}

int get(Context& context, const std::string& id) {
    outbox::pg::Client client(database_of(context));
    const auto row = client.get(id);
    if (!row) return not_found(context, id);
    auto shown = row_of(*row);
    // For people: why it waits. The JSON stays what outbox.get answers.
    const auto status = member_text(shown, "status");
    if (!context.json && (status == "scheduled" || status == "unknown")) {
        if (auto error = client.last_error(id)) shown.set("last_error", row_of(*error));
    }
    print_row(context, shown);
    return kDone;
}

int events(Context& context, const std::string& id) {
    outbox::pg::Client client(database_of(context));
    const auto rows = rows_of(client.events(id));
    // The clean path writes no event: an operation without any is nothing unusual.
    if (rows.empty() && !client.get(id)) return not_found(context, id);
    print_rows(context, rows, {"at", "kind", "epoch", "actor", "detail"});
    return kDone;
}

int list(Context& context, FilterOptions& options) {
    read_filter(options);
    outbox::pg::Client client(database_of(context));
    const auto rows = rows_of(client.list(options.filter));
    print_rows(
        context,
        rows,
        {"operation_id", "tool", "status", "attempts", "attention", "created_at", "seq"}
    );
    return kDone;
}

int stats(Context& context) {
    outbox::pg::Client client(database_of(context));
    print_rows(
        context,
        rows_of(client.stats()),
        {"tool",
         "status",
         "count",
         "oldest_age",
         "enqueued_1h",
         "replayed_1h",
         "replay_rate_1h",
         "enqueued_30d",
         "replayed_30d",
         "replay_rate_30d"}
    );
    return kDone;
}

}  // namespace

void add_reading_commands(CLI::App& app, Context& context) {
    auto* get_command = app.add_subcommand("get", "What became of an operation");
    auto get_id = std::make_shared<std::string>();
    get_command->add_option("id", *get_id, "Operation id")->required()->type_name("ID");
    add_shared_options(*get_command, context);
    get_command->footer("Example:\n  outboxd get op-12345 --json");
    get_command->callback([&context, get_id] {
        context.command = [&context, get_id] { return get(context, *get_id); };
    });

    auto* events_command = app.add_subcommand("events", "What went otherwise than usual");
    auto events_id = std::make_shared<std::string>();
    events_command->add_option("id", *events_id, "Operation id")->required()->type_name("ID");
    add_shared_options(*events_command, context);
    events_command->footer("Example:\n  outboxd events op-12345");
    events_command->callback([&context, events_id] {
        context.command = [&context, events_id] { return events(context, *events_id); };
    });

    auto* list_command = app.add_subcommand("list", "Operations, newest first");
    auto options = std::make_shared<FilterOptions>();
    add_filter_options(*list_command, *options);
    options->filter.limit = 100;
    list_command->add_option("--limit", options->filter.limit, "At most so many (100)")
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, kMostRows));
    list_command->add_option("--after", options->filter.after, "Go on behind the row with this seq")
        ->type_name("SEQ");
    add_shared_options(*list_command, context);
    list_command->footer(
        "Examples:\n"
        "  outboxd list --status unknown --older-than 15m\n"
        "  outboxd list --attention\n"
        "  outboxd list --tool create_ticket --limit 1000 --after 482911 --json"
    );
    list_command->callback([&context, options] {
        context.command = [&context, options] { return list(context, *options); };
    });

    auto* stats_command = app.add_subcommand(
        "stats", "What is open per tool, and how much of what came was a replay"
    );
    add_shared_options(*stats_command, context);
    stats_command->footer(
        "A line without a status sums up the tool: replay_rate is the share of calls that were\n"
        "answered with an earlier operation.\n\nExample:\n  outboxd stats --json"
    );
    stats_command->callback([&context] { context.command = [&context] { return stats(context); }; }
    );
}

}  // namespace outboxd
