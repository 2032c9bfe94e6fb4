#pragma once

#include <optional>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <vector>

#include "outboxd/compat.hpp"
#include "outboxd/errors.hpp"
#include "outboxd/receipt.hpp"
#include "outboxd/request.hpp"

namespace outboxd {

enum class Cancelled { cancelled, too_late, already_cancelled, already_failed, not_found };

namespace detail {

// Times as whole microseconds since 1970, whatever the session's DateStyle.
inline std::string columns(bool operation) {
    const auto time = [](const std::string& name) {
        return "(extract(epoch FROM " + name + ") * 1000000)::bigint AS " + name;
    };
    return "SELECT operation_id, status, replayed, result::text, error::text, message, " +
           time("created_at") + ", compensated_by, result_expired" +
           (operation ? ", tool, run_id, attempts, attempt_epoch, " + time("started_at") + ", " +
                            time("finished_at") + ", compensates, attention"
                      : std::string{}) +
           " FROM ";
}

inline pqxx::result ask(
    pqxx::transaction_base& transaction, const std::string& sql, const Parameters& parameters
) {
    try {
        return execute(transaction, sql, parameters);
    } catch (const pqxx::sql_error& error) {
        if (error.sqlstate().compare(0, 2, "OB") == 0) {
            refuse(error);
        }
        throw;
    }
}

inline std::optional<std::string> micros(const std::optional<Time>& time) {
    return time ? std::optional<std::string>(std::to_string(time->time_since_epoch().count()))
                : std::nullopt;
}

inline Receipt read_receipt(const pqxx::row& row) {
    Receipt receipt;
    read(row, receipt);
    return receipt;
}

}  // namespace detail

// Records the intent in the caller's transaction; it exists when that is committed. What is known
// already is replayed (receipt.replayed), and nothing runs again. Throws Refused.
inline Receipt enqueue(pqxx::transaction_base& transaction, const Request& request) {
    static const std::string sql =
        detail::columns(false) +
        "outbox.enqueue(tool => $1::text, arguments => $2::jsonb, operation_id => $3::text, "
        "run_id => $4::text, occurrence => $5::integer, priority => $6::smallint, "
        "run_at => timestamptz 'epoch' + $7::bigint * interval '1 microsecond', "
        "expires_at => timestamptz 'epoch' + $8::bigint * interval '1 microsecond', "
        "max_attempts => $9::integer, traceparent => $10::text, labels => $11::jsonb, "
        "retry_failed => $12::boolean)";
    const auto limit = request.max_attempts;
    const auto rows = detail::ask(
        transaction,
        sql,
        {request.tool,
         request.arguments,
         request.operation_id,
         request.run_id,
         std::to_string(request.occurrence),
         std::to_string(request.priority),
         detail::micros(request.run_at),
         detail::micros(request.expires_at),
         limit ? std::optional<std::string>(std::to_string(*limit)) : std::nullopt,
         request.traceparent,
         request.labels.empty() ? std::nullopt
                                : std::optional<std::string>(detail::json_labels(request.labels)),
         request.retry_failed ? "true" : "false"}
    );
    return detail::read_receipt(rows[0]);
}

// All or none of them, answered in their order.
inline std::vector<Receipt> enqueue_many(
    pqxx::transaction_base& transaction, const std::vector<Request>& requests
) {
    static const std::string sql =
        detail::columns(false) +
        "outbox.enqueue_many((SELECT coalesce(jsonb_agg(i.item || jsonb_build_object('arguments', "
        "(i.item ->> 'arguments')::jsonb) ORDER BY i.place), '[]') "
        "FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY i (item, place)))";
    std::string items;
    for (const auto& request : requests) {
        items += (items.empty() ? "" : ",") + detail::json_item(request);
    }
    std::vector<Receipt> receipts;
    for (const auto& row : detail::ask(transaction, sql, {"[" + items + "]"})) {
        receipts.push_back(detail::read_receipt(row));
    }
    return receipts;
}

// The operation as it is now; empty when the id is unknown.
inline std::optional<Operation> get(
    pqxx::transaction_base& transaction, const std::string& operation_id
) {
    static const std::string sql = detail::columns(true) + "outbox.get($1::text)";
    const auto rows = detail::ask(transaction, sql, {operation_id});
    return rows.empty() ? std::nullopt : std::optional<Operation>(detail::read_operation(rows[0]));
}

// Takes back what has not been attempted. too_late: it may happen, or has happened.
inline Cancelled cancel(
    pqxx::transaction_base& transaction,
    const std::string& operation_id,
    const std::optional<std::string>& reason = std::nullopt
) {
    const auto rows = detail::ask(
        transaction, "SELECT outbox.cancel($1::text, $2::text)", {operation_id, reason}
    );
    const std::string word = rows[0][0].c_str();
    if (word == "cancelled") {
        return Cancelled::cancelled;
    }
    if (word == "too_late") {
        return Cancelled::too_late;
    }
    if (word == "already_cancelled") {
        return Cancelled::already_cancelled;
    }
    if (word == "already_failed") {
        return Cancelled::already_failed;
    }
    if (word == "not_found") {
        return Cancelled::not_found;
    }
    throw std::runtime_error("this client does not know the answer " + word);
}

struct Compensation {
    std::optional<std::string> name{};  // may be left out when the tool has one only
    std::string arguments = "{}";       // JSON text of an object
    std::optional<std::string> reason{};
};

// Undoes an operation by the tool's named compensation, itself an operation that runs once.
inline Receipt compensate(
    pqxx::transaction_base& transaction,
    const std::string& operation_id,
    const Compensation& compensation = {}
) {
    static const std::string sql =
        detail::columns(false) + "outbox.compensate($1::text, $2::text, $3::jsonb, $4::text)";
    const auto rows = detail::ask(
        transaction,
        sql,
        {operation_id, compensation.name, compensation.arguments, compensation.reason}
    );
    return detail::read_receipt(rows[0]);
}

}  // namespace outboxd
