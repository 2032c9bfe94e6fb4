#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "config/units.hpp"
#include "daemon/arguments.hpp"
#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "daemon/pause.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

using std::chrono_literals::operator""ms;

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

bool is_final(const outbox::Json& row) {
    const std::string status = member_text(row, "status");
    return status == "succeeded" || status == "failed" || status == "cancelled";
}

// Asks until the operation is final or the time is up; whether this call replayed is kept.
outbox::Json wait_settled(
    outbox::pg::Client& client, const outbox::Json& receipt, std::chrono::milliseconds limit
) {
    const auto end = std::chrono::steady_clock::now() + limit;
    const std::string id = member_text(receipt, "operation_id");
    auto pause = 10ms;
    for (;;) {
        auto row = row_of(client.get(id).value_or("{}"));
        row.set("replayed", *receipt.find("replayed"));
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now()
        );
        if (is_final(row) || left <= 0ms) return row;
        pause_for(std::min(pause, left));
        pause = std::min(pause * 2, 250ms);
    }
}

int enqueue(Context& context, EnqueueOptions& options) {
    auto& call = options.call;
    if (call.operation_id.has_value() == call.run_id.has_value()) {
        throw CommandError(kUsage, "give --operation-id ID or --run-id R, and only one of them");
    }
    std::optional<std::chrono::milliseconds> limit;
    if (!options.wait.empty()) {
        limit = config::parse_duration(options.wait);
        if (!limit)
            throw CommandError(kUsage, "--wait takes a duration with its unit, such as 30s");
    }
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
