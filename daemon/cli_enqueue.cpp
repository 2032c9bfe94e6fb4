#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/arguments.hpp"
#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "daemon/settled.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

struct EnqueueOptions {
    outbox::pg::EnqueueCall call;
    std::vector<std::string> labels;
    std::string wait;
};

std::string labels_json(const std::vector<std::string>& labels) {
    outbox::Json object{outbox::Json::Object{}};
    for (const auto& label : labels) {
        const auto equals = label.find('=');
        if (equals == std::string::npos || equals == 0) {
            throw CommandError(kUsage, "--label takes key=value, not " + label);
        }
        object.set(label.substr(0, equals), outbox::Json(label.substr(equals + 1)));
    }
    return outbox::to_text(object);
}

int enqueue(Context& context, EnqueueOptions& options) {
    auto& call = options.call;
    if (call.operation_id.has_value() == call.run_id.has_value()) {
        throw CommandError(kUsage, "give --operation-id ID or --run-id R, and only one of them");
    }
    const auto limit = parse_wait(options.wait);
    call.arguments = outbox::to_text(read_arguments(call.arguments));
    if (!options.labels.empty()) call.labels = labels_json(options.labels);
    outbox::pg::Client client(database_of(context));
    auto row = row_of(client.enqueue(call));
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

void add_options(CLI::App& command, EnqueueOptions& options) {
    auto& call = options.call;
    command.add_option("tool", call.tool, "Tool")->required()->type_name("TOOL");
    command.add_option("--arguments", call.arguments, "JSON object, @FILE or @-")
        ->type_name("JSON");
    command.add_option("--operation-id", call.operation_id, "Explicit id")->type_name("ID");
    command.add_option("--run-id", call.run_id, "Run: the id is derived from it")->type_name("R");
    command.add_option("--occurrence", call.occurrence, "2 for a second intended identical call")
        ->type_name("N");
    command.add_option("--priority", call.priority, "-100 to 100, smaller first")->type_name("N");
    command.add_option("--run-at", call.run_at, "Not before this time")->type_name("T");
    command.add_option("--expires-at", call.expires_at, "Never start an attempt after")
        ->type_name("T");
    command.add_option("--max-attempts", call.max_attempts, "Instead of the tool's")
        ->type_name("N");
    command.add_option("--traceparent", call.traceparent, "W3C trace context")->type_name("TP");
    command.add_option("--label", options.labels, "For people and filters; may be repeated")
        ->type_name("K=V")
        ->allow_extra_args(false);
    command.add_flag(
        "--retry-failed", call.retry_failed, "If it is recorded as failed, arm it again"
    );
    command.add_option("--wait", options.wait, "Until it is settled; exit 1 unless it succeeded")
        ->type_name("30s");
}

}  // namespace

void add_enqueue_command(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand("enqueue", "File an operation, or learn what became of it");
    auto options = std::make_shared<EnqueueOptions>();
    add_options(*command, *options);
    add_config_option(*command, context);
    add_database_option(*command, context);
    add_json_option(*command, context);
    command->footer(
        "Example:\n"
        "  outboxd enqueue create_ticket --arguments '{\"title\": \"disk full\"}' "
        "--run-id monday --wait 30s"
    );
    command->callback([&context, options] {
        context.command = [&context, options] { return enqueue(context, *options); };
    });
}

}  // namespace outboxd
