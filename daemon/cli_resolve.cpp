#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

int resolve(Context& context, outbox::pg::ResolveCall call) {
    if (call.verdict == "not-applied") call.verdict = "not_applied";
    if (call.verdict != "applied" && call.verdict != "not_applied") {
        throw CommandError(kUsage, "--verdict is applied or not-applied");
    }
    if (call.result && call.verdict != "applied") {
        throw CommandError(kUsage, "--result goes with --verdict applied: else there is none");
    }
    if (call.result && !outbox::parse_json(*call.result).value) {
        throw CommandError(kUsage, "--result must be JSON");
    }
    outbox::pg::Client client(database_of(context));
    const std::string answer = client.resolve(call);
    print_answer(context, answer);
    return answer == "resolved" ? kDone : kNo;
}

}  // namespace

void add_resolve_command(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand(
        "resolve", "Settle an unknown operation by what you found out at the other side"
    );
    auto call = std::make_shared<outbox::pg::ResolveCall>();
    command->add_option("id", call->operation_id, "Operation id")->required()->type_name("ID");
    command->add_option("--verdict", call->verdict, "applied (it happened) or not-applied")
        ->required()
        ->type_name("V");
    add_reason_option(*command, call->reason)->required();
    add_actor_option(*command, call->actor)->required();
    command
        ->add_option(
            "--expect-epoch",
            call->expected_epoch,
            "attempt_epoch as you read it: another attempt since makes your verdict stale"
        )
        ->required()
        ->type_name("N");
    command->add_option("--result", call->result, "What it returned, if it happened")
        ->type_name("JSON");
    add_shared_options(*command, context);
    command->footer(
        "Answers: resolved; exit 1: stale (look again), too_early (an attempt may still be under\n"
        "way: wait for its time-out and settle), not_unknown, not_found.\n\n"
        "Example:\n"
        "  outboxd get op-12345 --json        # attempt_epoch is 2\n"
        "  outboxd resolve op-12345 --verdict applied --expect-epoch 2 --result '{\"id\": "
        "\"T-7\"}' "
        "\\\n"
        "      --reason 'ticket T-7 is there' --actor ann"
    );
    command->callback([&context, call] {
        context.command = [&context, call] { return resolve(context, *call); };
    });
}

}  // namespace outboxd
