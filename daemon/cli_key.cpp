#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>

#include "daemon/arguments.hpp"
#include "daemon/command.hpp"
#include "outbox/operation_key.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

struct KeyOptions {
    std::string tool;
    std::string run_id;
    std::string arguments = "{}";
    int occurrence = 1;
};

// The members that the file's dedup.fields name; all of them when it names none.
outbox::Json deduplicated(
    const config::Config& config, const std::string& tool, const outbox::Json& arguments
) {
    for (const auto& known : config.tools) {
        if (known.name != tool) continue;
        if (known.dedup_fields.empty()) return arguments;
        outbox::Json kept{outbox::Json::Object{}};
        for (const auto& field : known.dedup_fields) {
            const auto* value = arguments.find(field.value);
            if (value == nullptr) {
                throw CommandError(
                    kUsage,
                    fmt::format("{} is missing, and dedup.fields of {} names it", field.value, tool)
                );
            }
            kept.set(field.value, *value);
        }
        return kept;
    }
    throw CommandError(kNo, fmt::format("no tool {} in {}", tool, config.file));
}

int answer(const Context& context, const std::string& key) {
    if (context.json) {
        outbox::Json document;
        document.set("operation_id", key);
        context.console.out << outbox::to_text(document) << '\n';
    } else {
        context.console.out << key << '\n';
    }
    return kDone;
}

int print_key(Context& context, const KeyOptions& options) {
    auto arguments = read_arguments(options.arguments);
    // The variable alone does not count: the pure key must not depend on the environment.
    if (!context.database.empty()) {
        outbox::pg::Client client(context.database);
        return answer(
            context,
            client.derive_id(
                options.tool, outbox::to_text(arguments), options.run_id, options.occurrence
            )
        );
    }
    if (!context.config_file.empty()) {
        const auto loaded = load_config(context, context.config_file);
        arguments = deduplicated(loaded.config, options.tool, arguments);
    }
    const auto key =
        outbox::operation_key(options.tool, arguments, options.run_id, options.occurrence);
    if (key.error) throw CommandError(kUsage, key.error->message);
    return answer(context, key.key);
}

}  // namespace

void add_key_command(CLI::App& app, Context& context) {
    auto* key = app.add_subcommand(
        "key", "Print the derived operation id; with -c or --database by the tool's dedup.fields"
    );
    auto options = std::make_shared<KeyOptions>();
    key->add_option("--tool", options->tool, "Tool")->required()->type_name("T");
    key->add_option("--run-id", options->run_id, "Run: the scope of the id")->required();
    key->add_option("--arguments", options->arguments, "JSON object, @FILE or @-")
        ->required()
        ->type_name("JSON");
    key->add_option("--occurrence", options->occurrence, "2 for a second intended identical call")
        ->type_name("N")
        ->check(CLI::Range(1, 2147483647));
    add_shared_options(*key, context);
    key->footer(
        "Example:\n"
        "  outboxd key --tool create_ticket --run-id monday --arguments '{\"title\": \"disk "
        "full\"}'"
    );
    key->callback([&context, options] {
        context.command = [&context, options] { return print_key(context, *options); };
    });
}

}  // namespace outboxd
