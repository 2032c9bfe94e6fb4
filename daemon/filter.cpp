#include "daemon/filter.hpp"

#include <CLI/CLI.hpp>

#include "config/units.hpp"
#include "daemon/command.hpp"
#include "outbox/operation.hpp"

namespace outboxd {

void add_filter_options(CLI::App& command, FilterOptions& options) {
    auto& filter = options.filter;
    command.add_option("--status", filter.statuses, "Only these; may be repeated")
        ->type_name("S")
        ->allow_extra_args(false);
    command.add_option("--tool", filter.tool, "Only this tool")->type_name("T");
    command.add_option("--older-than", options.older_than, "Created longer ago than this, as 15m")
        ->type_name("D");
    command.add_flag("--attention", filter.attention, "Only what waits for a person");
}

void read_filter(FilterOptions& options) {
    for (const auto& status : options.filter.statuses) {
        if (outbox::parse_status(status)) continue;
        throw CommandError(
            kUsage,
            "--status is one of pending, scheduled, attempting, unknown, succeeded, failed, "
            "cancelled"
        );
    }
    if (options.older_than.empty()) return;
    options.filter.older_than = config::parse_duration(options.older_than);
    if (!options.filter.older_than) {
        throw CommandError(kUsage, "--older-than takes a duration with its unit, such as 15m");
    }
}

bool matches_everything(const FilterOptions& options) {
    const auto& filter = options.filter;
    return filter.statuses.empty() && !filter.tool && options.older_than.empty() &&
           !filter.attention;
}

}  // namespace outboxd
