// render: the exact request that would be sent, secrets masked.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>

#include "config/nearest.hpp"
#include "daemon/arguments.hpp"
#include "daemon/command.hpp"
#include "tools/rehearsal.hpp"

namespace outboxd {
namespace {

struct RenderOptions {
    std::string tool;
    std::string arguments = "{}";
    std::string phase = "execute";
    std::string operation_id = "example";
    std::string run_id;
    int attempt = 1;
    std::string original_id = "original";
    std::string original_arguments = "{}";
    std::string original_result = "{}";
};

outbox::Json read_json(const std::string& text, std::string_view option) {
    auto parsed = outbox::parse_json(text);
    if (parsed.value) return std::move(*parsed.value);
    throw CommandError(
        kUsage, fmt::format("{}: {} (at byte {})", option, parsed.error, parsed.offset)
    );
}

const config::Tool* find(const config::Config& config, const std::string& name) {
    const auto found =
        std::find_if(config.tools.begin(), config.tools.end(), [&](const auto& tool) {
            return tool.name == name;
        });
    return found == config.tools.end() ? nullptr : &*found;
}

// create_ticket with --phase close is the tool create_ticket:close.
std::string queue_name(const config::Config& config, const RenderOptions& options) {
    const bool own = options.phase == "execute" || options.phase == "reconcile";
    const auto name = own ? options.tool : options.tool + ":" + options.phase;
    if (find(config, name) != nullptr) return name;
    std::vector<std::string> known;
    for (const auto& tool : config.tools) known.push_back(tool.name);
    const auto hint = config::nearest_hint(name, known);
    throw CommandError(kNo, fmt::format("no tool {} in {}\n  hint: {}", name, config.file, hint));
}

int render(Context& context, const RenderOptions& options) {
    if (context.config_file.empty()) throw CommandError(kUsage, "name the configuration with -c");
    outbox::ToolCall call;
    auto& intent = call.intent;
    intent.id = outbox::OperationId(options.operation_id);
    intent.arguments = read_arguments(options.arguments);
    intent.original_arguments = read_json(options.original_arguments, "--original-arguments");
    intent.original_result = read_json(options.original_result, "--original-result");
    if (!options.run_id.empty()) intent.run_id = options.run_id;
    const auto now =
        std::chrono::time_point_cast<outbox::DbTime::duration>(std::chrono::system_clock::now());
    intent.created_at = outbox::DbTime{now.time_since_epoch()};
    call.first_sent_at = intent.created_at;
    call.attempt = options.attempt;

    config::Loaded loaded = config::load(context.config_file);
    check_tools(loaded);
    if (loaded.diagnostics.has_errors()) {
        throw ConfigurationError(std::move(loaded.diagnostics));
    }
    const auto& config = *loaded.config;
    const auto name = queue_name(config, options);
    intent.tool = name;
    if (find(config, name)->compensates_tool) {
        intent.compensates = outbox::OperationId(options.original_id);
    }
    std::string why;
    auto stage = tools::Rehearsal::of(config, name, why);
    if (!stage) throw CommandError(kNo, why);
    call.provider_key = stage->key_of(options.operation_id);
    const auto sent = options.phase == "reconcile" ? stage->lookup(call) : stage->request(call);
    if (!sent.ok()) {
        throw CommandError(
            kNo, fmt::format("nothing is sent, {}: {}", sent.error().code, sent.error().message)
        );
    }
    if (context.json) {
        context.console.out << outbox::to_text(tools::to_json(sent.value())) << '\n';
    } else {
        context.console.out << tools::to_text(sent.value());
    }
    return kDone;
}

}  // namespace

void add_render_command(CLI::App& app, Context& context) {
    auto* command = app.add_subcommand(
        "render", "Print the exact request a tool would send, secrets masked; nothing is sent"
    );
    auto options = std::make_shared<RenderOptions>();
    command->add_option("tool", options->tool, "Tool")->required()->type_name("TOOL");
    command->add_option("--arguments", options->arguments, "JSON object, @FILE or @-")
        ->type_name("JSON");
    command
        ->add_option("--phase", options->phase, "execute, reconcile, or the name of a compensation")
        ->type_name("NAME");
    command->add_option("--operation-id", options->operation_id, "Operation: makes the key")
        ->type_name("ID");
    command->add_option("--run-id", options->run_id, "{{ operation.run_id }}")->type_name("R");
    command->add_option("--attempt", options->attempt, "{{ operation.attempt }}")
        ->type_name("N")
        ->check(CLI::Range(1, 1'000'000));
    command->add_option("--original-id", options->original_id, "Of a compensation")
        ->type_name("ID");
    command->add_option("--original-arguments", options->original_arguments, "Of a compensation")
        ->type_name("JSON");
    command->add_option("--original-result", options->original_result, "Of a compensation")
        ->type_name("JSON");
    add_config_option(*command, context);
    add_json_option(*command, context);
    command->footer(
        "Example:\n"
        "  outboxd render create_ticket --arguments '{\"title\": \"disk full\"}' -c outboxd.yaml"
    );
    command->callback([&context, options] {
        context.command = [&context, options] { return render(context, *options); };
    });
}

}  // namespace outboxd
