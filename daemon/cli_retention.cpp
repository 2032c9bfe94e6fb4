// prune and forget-keys: retention by hand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include "config/units.hpp"
#include "daemon/command.hpp"
#include "daemon/output.hpp"
#include "daemon/pause.hpp"
#include "daemon/text.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono::milliseconds;

constexpr auto kBusyPatience = 30s;  // with another one that prunes

struct BatchOptions {
    int rows = 200;
    std::string pause;
};

struct PruneOptions {
    std::string payloads;
    std::string events;
    BatchOptions batch;
};

struct ForgetOptions {
    std::string older_than;
    bool yes = false;
    BatchOptions batch;
};

std::optional<milliseconds> duration(const char* option, const std::string& text) {
    if (text.empty()) return std::nullopt;
    const auto parsed = config::parse_duration(text);
    if (parsed) return parsed;
    throw CommandError(
        kUsage, fmt::format("{} takes a duration with its unit, such as 30d", option)
    );
}

// Between two transactions: what was asked for, else three times as long as the last one took, so
// that three quarters of the time belong to others.
class Pauses {
 public:
    explicit Pauses(const BatchOptions& options) : fixed_(duration("--pause", options.pause)) {}
    void begin() { start_ = std::chrono::steady_clock::now(); }
    void take() const {
        const auto took =
            std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start_);
        pause_for(fixed_.value_or(std::min<milliseconds>(took * 3, 5s)));
    }

 private:
    std::optional<milliseconds> fixed_;
    std::chrono::steady_clock::time_point start_;
};

std::int64_t prune_all(
    outbox::pg::Client& client,
    outbox::pg::Prune what,
    milliseconds older_than,
    const BatchOptions& batch
) {
    Pauses pauses(batch);
    std::int64_t pruned = 0;
    auto patience = std::chrono::steady_clock::now() + kBusyPatience;
    outbox::pg::PrunePage page{.pruned = 0, .next = 0, .more = true, .busy = false};
    while (page.more) {
        pauses.begin();
        page = client.prune(what, older_than, page.next, batch.rows);
        pruned += page.pruned;
        const auto now = std::chrono::steady_clock::now();
        if (!page.busy) patience = now + kBusyPatience;
        if (now > patience) throw CommandError(kNo, "somebody else prunes all the time: try later");
        if (page.busy) pause_for(100ms);
        if (page.more) pauses.take();
    }
    return pruned;
}

int prune(Context& context, const PruneOptions& options) {
    auto payloads = duration("--payloads-older-than", options.payloads);
    auto events = duration("--events-older-than", options.events);
    const std::string dsn = database_of(context);
    if (!payloads && !events) {
        if (context.config_file.empty()) {
            throw CommandError(
                kUsage,
                "prune what? Give --payloads-older-than or --events-older-than, or -c FILE for its "
                "retention"
            );
        }
        const auto retention = load_config(context, context.config_file).config.retention;
        payloads = retention.payloads;
        events = retention.events;
    }
    outbox::pg::Client client(dsn);
    outbox::Json document;
    const auto run = [&](const char* name, outbox::pg::Prune what, std::optional<milliseconds> age
                     ) {
        if (!age && !context.json) return;  // for people: what was not asked for is not there
        document.set(
            name, age ? outbox::Json(prune_all(client, what, *age, options.batch)) : outbox::Json()
        );
    };
    run("payloads", outbox::pg::Prune::payloads, payloads);
    run("events", outbox::pg::Prune::events, events);
    print_row(context, document);
    return kDone;
}

struct Forgotten {
    std::map<std::string, outbox::pg::ForgottenTool> tools;
    std::int64_t forgotten = 0;
    std::int64_t referenced = 0;
};

void print_forgotten(const Context& context, const Forgotten& all, bool yes) {
    auto& out = context.console.out;
    if (context.json) {
        outbox::Json::Array tools;
        for (const auto& [name, tool] : all.tools) {
            outbox::Json row;
            row.set("tool", name);
            row.set("forgotten", tool.forgotten);
            row.set("referenced", tool.referenced);
            tools.push_back(std::move(row));
        }
        outbox::Json document;
        document.set("dry_run", !yes);
        document.set("forgotten", all.forgotten);
        document.set("referenced", all.referenced);
        document.set("tools", std::move(tools));
        out << outbox::to_text(document) << '\n';
        return;
    }
    for (const auto& [name, tool] : all.tools) {
        out << fmt::format(
            "{}: {} keys {}\n", printable(name), tool.forgotten, yes ? "forgotten" : "would go"
        );
        if (tool.referenced > 0) {
            out << fmt::format(
                "{}: {} kept, tables of planners point at them\n", printable(name), tool.referenced
            );
        }
    }
    out << fmt::format(
        "{} keys in all. {} again: an operation with one of these ids, or the same call in the\n"
        "same run, is carried out as a new one.\n",
        all.forgotten,
        yes ? "They are allowed" : "They would be allowed"
    );
}

int forget(Context& context, const ForgetOptions& options) {
    auto older_than = duration("--older-than", options.older_than);
    if (!older_than && !context.config_file.empty()) {
        older_than = load_config(context, context.config_file).config.retention.keys;
    }
    if (!older_than) {
        throw CommandError(
            kUsage, "--older-than D is required, unless -c FILE has a time in retention.keys"
        );
    }
    outbox::pg::Client client(database_of(context));
    Forgotten all;
    Pauses pauses(options.batch);
    outbox::pg::ForgetPage page;
    page.more = true;
    while (page.more) {
        pauses.begin();
        page = client.forget_keys(*older_than, page.next, options.batch.rows, !options.yes);
        for (const auto& tool : page.tools) {
            auto& sum = all.tools[tool.tool];
            sum.forgotten += tool.forgotten;
            sum.referenced += tool.referenced;
            all.forgotten += tool.forgotten;
            all.referenced += tool.referenced;
        }
        if (page.more && options.yes) pauses.take();
    }
    print_forgotten(context, all, options.yes);
    if (options.yes) return kDone;
    throw CommandError(kUsage, "nothing was forgotten: say --yes if that is what you want");
}

void add_batch_options(CLI::App& command, BatchOptions& batch) {
    command.add_option("--batch", batch.rows, "Rows in one transaction (200)")
        ->type_name("N")
        ->check(CLI::Range(1, 10'000));
    command
        .add_option(
            "--pause", batch.pause, "Between two transactions (three times as long as one took)"
        )
        ->type_name("D");
}

}  // namespace

void add_retention_commands(CLI::App& app, Context& context) {
    auto* prune_command =
        app.add_subcommand("prune", "Take old payloads and events away; keys stay and replay");
    auto pruning = std::make_shared<PruneOptions>();
    prune_command
        ->add_option(
            "--payloads-older-than",
            pruning->payloads,
            "Arguments and results of operations that ended longer ago"
        )
        ->type_name("D");
    prune_command
        ->add_option("--events-older-than", pruning->events, "Events that are older than this")
        ->type_name("D");
    add_batch_options(*prune_command, pruning->batch);
    add_shared_options(*prune_command, context);
    prune_command->footer(
        "Daemons do this by themselves, as `retention:` in the configuration says; with -c and\n"
        "neither age, so does this command. What is open or flagged, and the original of a\n"
        "compensation that is still open, is left alone.\n\n"
        "Examples:\n"
        "  outboxd prune --payloads-older-than 30d --events-older-than 90d\n"
        "  outboxd prune -c outboxd.yaml --batch 50 --pause 200ms"
    );
    prune_command->callback([&context, pruning] {
        context.command = [&context, pruning] { return prune(context, *pruning); };
    });

    auto* forget_command = app.add_subcommand(
        "forget-keys", "Forget that operations ever ran: their effects become possible again"
    );
    auto forgetting = std::make_shared<ForgetOptions>();
    forget_command
        ->add_option("--older-than", forgetting->older_than, "Operations that ended longer ago")
        ->type_name("D");
    forget_command->add_flag("--yes", forgetting->yes, "Do it; without it they are only counted");
    add_batch_options(*forget_command, forgetting->batch);
    add_shared_options(*forget_command, context);
    forget_command->footer(
        "Nothing else ever forgets a key. Kept are open and flagged operations, originals whose\n"
        "compensations are kept, and what a table of a planner points at. Exit 2 without --yes.\n\n"
        "Examples:\n"
        "  outboxd forget-keys --older-than 400d\n"
        "  outboxd forget-keys --older-than 400d --yes"
    );
    forget_command->callback([&context, forgetting] {
        context.command = [&context, forgetting] { return forget(context, *forgetting); };
    });
}

}  // namespace outboxd
