#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

// What is steered, an operation or a tool, and why.
struct Target {
    std::string name;
    std::string reason;
};

// Calls one function of the contract; its word is the answer, "done" when it is the wanted one.
struct Verb {
    const char* name;
    const char* help;
    const char* target;
    bool with_reason;
    bool reason_required;
    const char* done;
    std::string (*call)(outbox::pg::Client& client, const Target& target);
    const char* example;
};

std::string cancel(outbox::pg::Client& client, const Target& target) {
    return client.cancel(
        target.name, target.reason.empty() ? std::nullopt : std::optional(target.reason)
    );
}

std::string retry(outbox::pg::Client& client, const Target& target) {
    return client.retry(target.name, target.reason);
}

std::string pause(outbox::pg::Client& client, const Target& target) {
    return client.pause_tool(target.name, target.reason);
}

std::string resume(outbox::pg::Client& client, const Target& target) {
    return client.resume_tool(target.name);
}

constexpr Verb kVerbs[] = {
    {"cancel",
     "Take an operation back before its first attempt",
     "ID",
     true,
     false,
     "cancelled",
     cancel,
     "outboxd cancel op-12345 --reason 'ordered by mistake'"},
    {"retry",
     "Arm a failed operation (no effect) once more",
     "ID",
     true,
     true,
     "armed",
     retry,
     "outboxd retry op-12345 --reason 'the account exists now'"},
    {"pause",
     "No new attempts of a tool, anywhere",
     "TOOL",
     true,
     true,
     "paused",
     pause,
     "outboxd pause create_ticket --reason 'the help desk is being moved'"},
    {"resume",
     "End a pause",
     "TOOL",
     false,
     false,
     "resumed",
     resume,
     "outboxd resume create_ticket"},
};

int steer(Context& context, const Verb& verb, const Target& target) {
    outbox::pg::Client client(database_of(context));
    const std::string answer = verb.call(client, target);
    if (context.json) {
        outbox::Json document;
        document.set("answer", answer);
        context.console.out << outbox::to_text(document) << '\n';
    } else {
        context.console.out << answer << '\n';
    }
    return answer == verb.done ? kDone : kNo;
}

void add_shared_options(CLI::App& command, Context& context) {
    add_config_option(command, context);
    add_database_option(command, context);
    add_json_option(command, context);
}

void add_verb(CLI::App& app, Context& context, const Verb& verb) {
    auto* command = app.add_subcommand(verb.name, verb.help);
    auto target = std::make_shared<Target>();
    command->add_option("target", target->name, "Which")->required()->type_name(verb.target);
    if (verb.with_reason) {
        command->add_option("--reason", target->reason, "Why; it is kept")
            ->required(verb.reason_required)
            ->type_name("TEXT");
    }
    add_shared_options(*command, context);
    command->footer(std::string("Example:\n  ") + verb.example);
    command->callback([&context, &verb, target] {
        context.command = [&context, &verb, target] { return steer(context, verb, *target); };
    });
}

using Listing = std::vector<std::string> (outbox::pg::Client::*)();

void add_listing(
    CLI::App& app,
    Context& context,
    const std::string& name,
    const std::string& help,
    Listing listing,
    const std::vector<std::string>& columns
) {
    auto* command = app.add_subcommand(name, help);
    add_shared_options(*command, context);
    command->footer("Example:\n  outboxd " + name + " --json");
    command->callback([&context, listing, columns] {
        context.command = [&context, listing, columns]() -> int {
            outbox::pg::Client client(database_of(context));
            std::vector<outbox::Json> rows;
            for (const auto& text : (client.*listing)()) rows.push_back(row_of(text));
            print_rows(context, rows, columns);
            return kDone;
        };
    });
}

}  // namespace

void add_steering_commands(CLI::App& app, Context& context) {
    for (const auto& verb : kVerbs) add_verb(app, context, verb);
    add_listing(
        app,
        context,
        "tools",
        "The catalogue that daemons publish",
        &outbox::pg::Client::tools,
        {"tool", "effect", "max_attempts", "timeout", "published_at", "paused_at", "paused_reason"}
    );
    add_listing(
        app,
        context,
        "workers",
        "Daemons, the latest start first",
        &outbox::pg::Client::workers,
        {"name", "worker", "version", "alive", "started_at", "heartbeat_at", "stopped_at"}
    );
}

}  // namespace outboxd
