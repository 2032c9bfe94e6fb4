#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

// What is steered, an operation or a tool, why, and by whom.
struct Target {
    std::string name;
    std::string reason;
    std::string actor;
};

enum class Asks { nothing, reason, reason_and_actor };

// Calls one function of the contract; its word is the answer.
struct Verb {
    const char* name;
    const char* help;
    const char* target;
    Asks asks;
    std::vector<std::string> done;  // the words that are no "no"
    std::string (*call)(outbox::pg::Client& client, const Target& target);
    const char* footer;
};

std::string pause(outbox::pg::Client& client, const Target& target) {
    return client.pause_tool(target.name, target.reason);
}

std::string resume(outbox::pg::Client& client, const Target& target) {
    return client.resume_tool(target.name);
}

std::string probe(outbox::pg::Client& client, const Target& target) {
    return client.probe(target.name);
}

std::string acknowledge(outbox::pg::Client& client, const Target& target) {
    return client.acknowledge(target.name, target.reason, target.actor);
}

const std::vector<Verb>& verbs() {
    static const std::vector<Verb> all{
        {"probe",
         "Ask the other side now whether an unknown operation happened",
         "ID",
         Asks::nothing,
         {"asked", "probing"},
         probe,
         "A daemon that serves the tool asks within a second or so, also about what waits for a\n"
         "person. The answer is in: outboxd events ID\n\n"
         "Answers: asked, probing (it is being asked already); exit 1: not_unknown, not_found.\n\n"
         "Example:\n  outboxd probe op-12345"},
        {"acknowledge",
         "Clear the flag of an operation that is final: you know, and did what it takes",
         "ID",
         Asks::reason_and_actor,
         {"acknowledged"},
         acknowledge,
         "Answers: acknowledged; exit 1: nothing_to_acknowledge, not_found.\n\n"
         "Example:\n  outboxd acknowledge op-12345 --reason 'closed T-8 by hand' --actor ann"},
        {"pause",
         "No new attempts of a tool, anywhere",
         "TOOL",
         Asks::reason,
         {"paused"},
         pause,
         "What runs ends, and look-ups go on.\n\n"
         "Example:\n  outboxd pause create_ticket --reason 'the help desk is being moved'"},
        {"resume",
         "End a pause",
         "TOOL",
         Asks::nothing,
         {"resumed"},
         resume,
         "Example:\n  outboxd resume create_ticket"},
    };
    return all;
}

int steer(Context& context, const Verb& verb, const Target& target) {
    outbox::pg::Client client(database_of(context));
    const std::string answer = verb.call(client, target);
    print_answer(context, answer);
    return std::find(verb.done.begin(), verb.done.end(), answer) != verb.done.end() ? kDone : kNo;
}

void add_verb(CLI::App& app, Context& context, const Verb& verb) {
    auto* command = app.add_subcommand(verb.name, verb.help);
    auto target = std::make_shared<Target>();
    command->add_option("target", target->name, "Which")->required()->type_name(verb.target);
    if (verb.asks != Asks::nothing) add_reason_option(*command, target->reason)->required();
    if (verb.asks == Asks::reason_and_actor) {
        add_actor_option(*command, target->actor)->required();
    }
    add_shared_options(*command, context);
    command->footer(verb.footer);
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
    for (const auto& verb : verbs()) add_verb(app, context, verb);
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
