// cancel and retry: one operation by its id, or everything that a filter matches.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/command.hpp"
#include "daemon/filter.hpp"
#include "daemon/output.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

using outbox::pg::Answers;
using outbox::pg::Bulk;

struct BulkVerb {
    const char* name;
    const char* help;
    Bulk what;
    bool reason_required;
    std::vector<std::string> statuses;  // of what can be steered so
    const char* done;
    const char* footer;
};

struct BulkOptions {
    std::string id;
    std::string reason;
    FilterOptions filters;
    bool dry_run = false;
};

const std::vector<BulkVerb>& bulk_verbs() {
    static const std::vector<BulkVerb> all{
        {"cancel",
         "Take operations back before their first attempt",
         Bulk::cancel,
         false,
         {"pending", "scheduled"},
         "cancelled",
         "Answers: cancelled; exit 1: too_late, already_cancelled, already_failed, not_found.\n"
         "With filters, all that match and are pending or scheduled are cancelled, newest first, "
         "in\n"
         "small transactions; exit 1 if any of them could not be.\n\n"
         "Examples:\n"
         "  outboxd cancel op-12345 --reason 'ordered by mistake'\n"
         "  outboxd cancel --tool send_mail --older-than 2h --dry-run"},
        {"retry",
         "Arm failed operations (no effect) once more",
         Bulk::retry,
         true,
         {"failed"},
         "armed",
         "Answers: armed; exit 1: not_failed, not_found, pruned (its arguments are gone: enqueue "
         "it\n"
         "again with --retry-failed).\n"
         "With filters, all that match and are failed are armed, newest first, in small\n"
         "transactions; exit 1 if any of them could not be.\n\n"
         "Examples:\n"
         "  outboxd retry op-12345 --reason 'the account exists now'\n"
         "  outboxd retry --status failed --tool create_ticket --reason 'desk is back' --dry-run"},
    };
    return all;
}

int one(Context& context, const BulkVerb& verb, const BulkOptions& options) {
    outbox::pg::Client client(database_of(context));
    const std::string answer =
        verb.what == Bulk::cancel
            ? client.cancel(
                  options.id, options.reason.empty() ? std::nullopt : std::optional(options.reason)
              )
            : client.retry(options.id, options.reason);
    print_answer(context, answer);
    return answer == verb.done ? kDone : kNo;
}

std::int64_t count_of(const Answers& answers, const std::string& word) {
    const auto found = answers.find(word);
    return found == answers.end() ? 0 : found->second;
}

void print_answers(
    const Context& context, const BulkVerb& verb, bool dry_run, const Answers& answers
) {
    std::int64_t matched = 0;
    for (const auto& [word, count] : answers) matched += count;
    const auto done = count_of(answers, verb.done);
    if (context.json) {
        outbox::Json document;
        document.set("dry_run", dry_run);
        document.set("matched", matched);
        document.set("done", done);
        outbox::Json words{outbox::Json::Object{}};
        if (!dry_run) {
            for (const auto& [word, count] : answers) words.set(word, count);
        }
        document.set("answers", std::move(words));
        context.console.out << outbox::to_text(document) << '\n';
        return;
    }
    if (dry_run) {
        context.console.out << fmt::format("would be {}: {}\n", verb.done, matched);
        return;
    }
    context.console.out << fmt::format("{} {}\n", verb.done, done);
    for (const auto& [word, count] : answers) {
        if (word != verb.done) context.console.out << fmt::format("{} {}\n", word, count);
    }
}

int many(Context& context, const BulkVerb& verb, BulkOptions& options) {
    read_filter(options.filters);
    auto& filter = options.filters.filter;
    for (const auto& status : filter.statuses) {
        if (std::count(verb.statuses.begin(), verb.statuses.end(), status) > 0) continue;
        throw CommandError(
            kUsage,
            fmt::format(
                "{} is for what is {}, not for {}",
                verb.name,
                fmt::join(verb.statuses, " or "),
                status
            )
        );
    }
    if (filter.statuses.empty()) filter.statuses = verb.statuses;
    outbox::pg::Client client(database_of(context));
    Answers answers;
    try {
        client.bulk(options.dry_run ? Bulk::match : verb.what, filter, options.reason, answers);
    } catch (...) {
        // What was done is done: the count comes before the trouble.
        if (!options.dry_run) print_answers(context, verb, false, answers);
        throw;
    }
    print_answers(context, verb, options.dry_run, answers);
    if (options.dry_run) return kDone;
    return answers.size() == static_cast<std::size_t>(answers.count(verb.done)) ? kDone : kNo;
}

int run(Context& context, const BulkVerb& verb, BulkOptions& options) {
    const bool filtered = !matches_everything(options.filters);
    if (options.id.empty() && !filtered) {
        throw CommandError(
            kUsage,
            fmt::format(
                "{} what? Give an ID, or filters such as --status {}", verb.name, verb.statuses[0]
            )
        );
    }
    if (!options.id.empty() && (filtered || options.dry_run)) {
        throw CommandError(kUsage, "give an ID, or filters (with --dry-run), not both");
    }
    if (verb.reason_required && options.reason.empty() && !options.dry_run) {
        throw CommandError(kUsage, "--reason is required");
    }
    return options.id.empty() ? many(context, verb, options) : one(context, verb, options);
}

}  // namespace

void add_bulk_commands(CLI::App& app, Context& context) {
    for (const auto& verb : bulk_verbs()) {
        auto* command = app.add_subcommand(verb.name, verb.help);
        auto options = std::make_shared<BulkOptions>();
        options->filters.filter.limit = kMostRows;
        command->add_option("id", options->id, "Operation id")->type_name("ID");
        add_reason_option(*command, options->reason);
        add_filter_options(*command, options->filters);
        command->add_option("--limit", options->filters.filter.limit, "At most so many")
            ->type_name("N")
            ->check(CLI::Range(std::int64_t{1}, kMostRows));
        command->add_flag("--dry-run", options->dry_run, "Only say how many match");
        add_shared_options(*command, context);
        command->footer(verb.footer);
        command->callback([&context, &verb, options] {
            context.command = [&context, &verb, options] { return run(context, verb, *options); };
        });
    }
}

}  // namespace outboxd
