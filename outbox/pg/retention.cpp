#include "outbox/pg/retention.hpp"

#include "outbox/pg/session.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

PrunePage prune(
    Session& session, Prune what, std::chrono::milliseconds older_than, std::int64_t after, int rows
) {
    const bool payloads = what == Prune::payloads;
    auto found = session.write(
        payloads ? sql::prune_payloads : sql::prune_events,
        {std::to_string(older_than.count()), std::to_string(after), std::to_string(rows)}
    );
    const auto row = found[0];
    return {
        .pruned = row["pruned"].as<std::int64_t>(),
        .next = row["next"].as<std::int64_t>(),
        .more = row["more"].as<bool>(),
        .busy = payloads && row["busy"].as<bool>(),
    };
}

ForgetPage forget_keys(
    Session& session,
    std::chrono::milliseconds older_than,
    std::int64_t after,
    int rows,
    bool dry_run
) {
    auto found = session.write(
        sql::forget_keys,
        {std::to_string(older_than.count()),
         std::to_string(after),
         std::to_string(rows),
         dry_run ? "t" : "f"}
    );
    ForgetPage page;
    for (const auto& row : found) {
        if (row["tool"].is_null()) {
            page.next = row["next"].as<std::int64_t>();
            page.more = row["more"].as<bool>();
        } else {
            page.tools.push_back(
                {.tool = row["tool"].c_str(),
                 .forgotten = row["forgotten"].as<std::int64_t>(),
                 .referenced = row["referenced"].as<std::int64_t>()}
            );
        }
    }
    return page;
}

}  // namespace outbox::pg
