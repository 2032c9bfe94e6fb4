#include "outbox/pg/client.hpp"

#include <algorithm>

#include "outbox/pg/array_text.hpp"
#include "outbox/pg/migrator.hpp"
#include "outbox/pg/pg_error.hpp"
#include "outbox/pg/rows.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

// A person waits: as long as they like, but not for ever.
constexpr SessionSettings kPatient{
    .statement_timeout = std::chrono::minutes(1), .lock_timeout = std::chrono::seconds(30)
};

constexpr int kNamespaceTries = 5;

// Rows per transaction. Cancelling takes a sub-transaction for each, and beyond 64 of them every
// other session has to look them up on disk.
constexpr std::int64_t kChunk = 50;
constexpr std::int64_t kListPage = 1000;

std::optional<std::string> clean(const std::optional<std::string>& text) {
    return text ? std::optional(without_nul(*text)) : std::nullopt;
}

std::optional<std::string> number(const std::optional<int>& value) {
    return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

}  // namespace

Parameters list_parameters(const ListFilter& filter) {
    const auto text = [](const auto& value) {
        return value ? std::optional(std::to_string(*value)) : std::nullopt;
    };
    std::optional<std::string> statuses;
    if (!filter.statuses.empty()) {
        ArrayText array;
        for (const auto& status : filter.statuses) array.add(std::string_view(status));
        statuses = std::move(array).take();
    }
    std::optional<std::string> age;
    if (filter.older_than) age = std::to_string(filter.older_than->count());
    return {
        statuses,
        clean(filter.tool),
        age,
        filter.attention ? "t" : "f",
        text(filter.after),
        std::to_string(filter.limit)
    };
}

Client::Client(const std::string& dsn)
    : own_(std::make_unique<Session>(dsn, kPatient, nullptr)), session_(*own_) {
    try {
        const auto state = schema_state(session_.connection());
        if (state.fit != SchemaFit::fits) throw SchemaMismatch(state.message);
    } catch (const SqlError& error) {
        // Planners and readers may not see which migrations are applied; the functions they may
        // call say what is missing.
        if (error.sqlstate() != "42501") throw;
    }
}

std::string enqueue(Session& session, const EnqueueCall& call) {
    auto rows = session.write(
        sql::enqueue_operation,
        {without_nul(call.tool),
         without_nul(call.arguments),
         clean(call.operation_id),
         clean(call.run_id),
         number(call.occurrence),
         number(call.priority),
         clean(call.run_at),
         clean(call.expires_at),
         number(call.max_attempts),
         clean(call.traceparent),
         clean(call.labels),
         call.retry_failed ? "t" : "f"}
    );
    return rows[0][0].c_str();
}

std::string compensate(Session& session, const CompensateCall& call) {
    auto rows = session.write(
        sql::compensate_operation,
        {without_nul(call.operation_id),
         clean(call.name),
         without_nul(call.arguments),
         clean(call.reason)}
    );
    return rows[0][0].c_str();
}

std::optional<std::string> get(Session& session, const std::string& operation_id) {
    // A reader may see every operation, though not by the planners' function.
    const auto look = [&] {
        try {
            return session.read(sql::get_operation, {without_nul(operation_id)});
        } catch (const SqlError& error) {
            if (error.sqlstate() != "42501") throw;
            return session.read(sql::view_operation, {without_nul(operation_id)});
        }
    };
    auto rows = look();
    if (rows.empty()) {
        return std::nullopt;
    }
    return rows[0][0].c_str();
}

std::string Client::enqueue(const EnqueueCall& call) {
    return pg::enqueue(session_, call);
}

std::string Client::compensate(const CompensateCall& call) {
    return pg::compensate(session_, call);
}

std::optional<std::string> Client::get(const std::string& operation_id) {
    return pg::get(session_, operation_id);
}

std::optional<std::string> Client::last_error(const std::string& operation_id) {
    try {
        auto rows = session_.read(sql::get_last_error, {without_nul(operation_id)});
        if (rows.empty() || rows[0][0].is_null()) return std::nullopt;
        return rows[0][0].c_str();
    } catch (const SqlError& error) {
        if (error.sqlstate() == "42501") return std::nullopt;
        throw;
    }
}

std::vector<std::string> Client::events(const std::string& operation_id) {
    return read_texts(session_.read(sql::list_events, {without_nul(operation_id)}));
}

template <class OnRow>
void Client::walk(
    const std::string& statement,
    const ListFilter& filter,
    std::int64_t page,
    const std::optional<std::string>& reason,
    OnRow on_row
) {
    auto one = filter;
    for (std::int64_t left = filter.limit; left > 0;) {
        const auto rows = std::min(left, page);
        one.limit = rows;
        auto parameters = list_parameters(one);
        if (reason) {
            parameters.push_back(clean(reason));
        }
        const auto found =
            reason ? session_.write(statement, parameters) : session_.read(statement, parameters);
        for (const auto& row : found) {
            one.after = row[0].as<std::int64_t>();
            on_row(row[1].c_str());
        }
        left = static_cast<std::int64_t>(found.size()) < rows ? 0 : left - rows;
    }
}

std::vector<std::string> Client::list(const ListFilter& filter) {
    std::vector<std::string> rows;
    walk(sql::list_operations, filter, kListPage, std::nullopt, [&](const char* row) {
        rows.emplace_back(row);
    });
    return rows;
}

void Client::bulk(
    Bulk what, const ListFilter& filter, const std::string& reason, Answers& answers
) {
    const auto count = [&](const char* answer) { ++answers[answer]; };
    switch (what) {
        case Bulk::match:
            walk(sql::match_operations, filter, kListPage, std::nullopt, count);
            break;
        case Bulk::cancel:
            walk(sql::cancel_operations, filter, kChunk, reason, count);
            break;
        case Bulk::retry:
            walk(sql::retry_operations, filter, kChunk, reason, count);
            break;
    }
}

std::string Client::cancel(
    const std::string& operation_id, const std::optional<std::string>& reason
) {
    auto rows = session_.write(sql::cancel_operation, {without_nul(operation_id), clean(reason)});
    return rows[0][0].c_str();
}

std::string Client::retry(const std::string& operation_id, const std::string& reason) {
    auto rows =
        session_.write(sql::retry_operation, {without_nul(operation_id), without_nul(reason)});
    return rows[0][0].c_str();
}

std::string Client::probe(const std::string& operation_id) {
    auto rows = session_.write(sql::probe_operation, {without_nul(operation_id)});
    return rows[0][0].c_str();
}

std::string Client::acknowledge(
    const std::string& operation_id, const std::string& reason, const std::string& actor
) {
    auto rows = session_.write(
        sql::acknowledge_operation,
        {without_nul(operation_id), without_nul(reason), without_nul(actor)}
    );
    return rows[0][0].c_str();
}

std::string Client::resolve(const ResolveCall& call) {
    auto rows = session_.write(
        sql::resolve_operation,
        {without_nul(call.operation_id),
         call.verdict,
         without_nul(call.reason),
         without_nul(call.actor),
         std::to_string(call.expected_epoch),
         clean(call.result)}
    );
    return rows[0][0].c_str();
}

std::string Client::pause_tool(const std::string& tool, const std::string& reason) {
    auto rows = session_.write(sql::pause_tool, {without_nul(tool), without_nul(reason)});
    return rows[0][0].c_str();
}

std::string Client::resume_tool(const std::string& tool) {
    auto rows = session_.write(sql::resume_tool, {without_nul(tool)});
    return rows[0][0].c_str();
}

std::vector<std::string> Client::stats() {
    return read_texts(session_.read(sql::read_stats, {}));
}

std::vector<std::string> Client::tools() {
    return read_texts(session_.read(sql::list_tools, {}));
}

std::vector<std::string> Client::workers() {
    return read_texts(session_.read(sql::list_workers, {}));
}

PrunePage Client::prune(
    Prune what, std::chrono::milliseconds older_than, std::int64_t after, int rows
) {
    return pg::prune(session_, what, older_than, after, rows);
}

ForgetPage Client::forget_keys(
    std::chrono::milliseconds older_than, std::int64_t after, int rows, bool dry_run
) {
    return pg::forget_keys(session_, older_than, after, rows, dry_run);
}

std::string Client::claim_namespace(const std::string& wanted) {
    for (int tries = 0; tries < kNamespaceTries; ++tries) {
        auto rows = session_.write(sql::claim_namespace, {without_nul(wanted)});
        if (!rows.empty()) {
            return rows[0][0].c_str();
        }
    }
    throw StoreError(StoreError::Kind::conflict, "the namespace is being recorded by another one");
}

std::string Client::derive_id(
    const std::string& tool, const std::string& arguments, const std::string& run_id, int occurrence
) {
    auto rows = session_.read(
        sql::derive_id,
        {without_nul(tool), without_nul(arguments), without_nul(run_id), std::to_string(occurrence)}
    );
    return rows[0][0].c_str();
}

}  // namespace outbox::pg
