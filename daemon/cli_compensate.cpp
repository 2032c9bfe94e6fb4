#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "daemon/arguments.hpp"
#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "daemon/settled.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

struct CompensateOptions {
    outbox::pg::CompensateCall call;
    std::string wait;
};

int compensate(Context& context, CompensateOptions& options) {
    auto& call = options.call;
    const auto limit = parse_wait(options.wait);
    call.arguments = outbox::to_text(read_arguments(call.arguments));
    outbox::pg::Client client(database_of(context));
    auto row = row_of(client.compensate(call));
    // About the original itself: cancelled by this call, or there was nothing to undo before it.
    const bool about_original = member_text(row, "operation_id") == call.operation_id;
    if (about_original) {
        print_row(context, row);
        return cell_text(row.find("replayed")) == "false" ? kDone : kNo;
    }
    if (limit) row = wait_settled(client, row, *limit);
    print_row(context, row);
    if (!limit) return kDone;
    if (!is_final(row)) {
        context.console.err << fmt::format(
            "outboxd: still {} after {}; it goes on\n", member_text(row, "status"), options.wait
        );
    }
    return member_text(row, "status") == "succeeded" ? kDone : kNo;
}

}  // namespace

void add_compensate_command(CLI::App& app, Context& context) {
    auto* command =
        app.add_subcommand("compensate", "Undo an operation by a compensation of its tool, once");
    auto options = std::make_shared<CompensateOptions>();
    auto& call = options->call;
    command->add_option("id", call.operation_id, "The operation to undo")
        ->required()
        ->type_name("ID");
    command->add_option("name", call.name, "Which compensation, if its tool has several")
        ->type_name("NAME");
    command->add_option("--arguments", call.arguments, "JSON object, @FILE or @-")
        ->type_name("JSON");
    command->add_option("--reason", call.reason, "Why; it is kept")->type_name("TEXT");
    command->add_option("--wait", options->wait, "Until it is settled; exit 1 unless it succeeded")
        ->type_name("30s");
    add_config_option(*command, context);
    add_database_option(*command, context);
    add_json_option(*command, context);
    command->footer(
        "What was not carried out yet is cancelled instead; exit 1 when there is nothing to undo.\n"
        "Example:\n"
        "  outboxd compensate op-12345 close --reason 'opened by mistake' --wait 30s"
    );
    command->callback([&context, options] {
        context.command = [&context, options] { return compensate(context, *options); };
    });
}

}  // namespace outboxd
