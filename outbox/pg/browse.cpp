#include "outbox/pg/browse.hpp"

#include <algorithm>

#include "outbox/pg/array_text.hpp"
#include "outbox/pg/rows.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

std::optional<std::string> text_of(const pqxx::field& field) {
    if (field.is_null()) return std::nullopt;
    return field.c_str();
}

}  // namespace

std::vector<BrowsedOperation> browse(Session& session, const ListFilter& filter) {
    std::vector<BrowsedOperation> found;
    for (const auto& row : session.read(sql::browse_operations, list_parameters(filter))) {
        found.push_back({row[0].as<std::int64_t>(), row[1].c_str(), row[2].c_str()});
    }
    return found;
}

std::optional<ToldOperation> tell(
    Session& session, const std::string& operation_id, int most_events
) {
    const auto rows = session.read(sql::tell_operation, {without_nul(operation_id)});
    if (rows.empty()) return std::nullopt;
    const auto& row = rows[0];
    ToldOperation told{
        .operation = row[0].c_str(),
        .intent = row[1].c_str(),
        .arguments = row[3].c_str(),
        .created_us = row[4].as<std::int64_t>(),
        .first_sent_us = row[5].as<std::int64_t>(),
        .attempts = row[6].as<int>(),
        .work = text_of(row[2]),
        .tool = row[7].c_str(),
        .pruned = row[8].as<bool>(),
        .original_tool = text_of(row[9]),
        .original_arguments = text_of(row[10]),
        .original_result = text_of(row[11]),
        .compensations = row[12].c_str(),
        .undone_by = row[13].c_str(),
        .events = {},
        .more_events = false,
    };
    told.events =
        read_texts(session.read(sql::latest_events, {operation_id, std::to_string(most_events + 1)})
        );
    told.more_events = told.events.size() > static_cast<std::size_t>(most_events);
    if (told.more_events) told.events.pop_back();
    std::reverse(told.events.begin(), told.events.end());
    return told;
}

std::vector<std::string> attention_counts(Session& session) {
    return read_texts(session.read(sql::count_attention, {}));
}

std::vector<std::string> hourly_tally(Session& session) {
    return read_texts(session.read(sql::hourly_tally, {}));
}

}  // namespace outbox::pg
