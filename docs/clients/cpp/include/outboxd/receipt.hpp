#pragma once

#include <chrono>
#include <optional>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <string_view>

namespace outboxd {

// Microseconds, as Postgres has them.
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

enum class Status { pending, scheduled, attempting, unknown, succeeded, failed, cancelled };

constexpr std::string_view to_string(Status status) {
    switch (status) {
        case Status::pending:
            return "pending";
        case Status::scheduled:
            return "scheduled";
        case Status::attempting:
            return "attempting";
        case Status::unknown:
            return "unknown";
        case Status::succeeded:
            return "succeeded";
        case Status::failed:
            return "failed";
        case Status::cancelled:
            return "cancelled";
    }
    return "";
}

inline Status parse_status(std::string_view text) {
    for (const auto status :
         {Status::pending,
          Status::scheduled,
          Status::attempting,
          Status::unknown,
          Status::succeeded,
          Status::failed,
          Status::cancelled}) {
        if (to_string(status) == text) {
            return status;
        }
    }
    throw std::runtime_error("this client does not know the status " + std::string{text});
}

// One operation as the outbox knows it. failed means: there was no effect.
struct Receipt {
    std::string operation_id;
    Status status = Status::pending;
    std::optional<bool> replayed;       // true: known already, nothing was executed again
    std::optional<std::string> result;  // JSON text of what the tool answered, when succeeded
    std::optional<std::string> error;   // JSON text {"code", "message"}, when failed
    std::string message;                // one sentence for a model
    Time created_at;
    std::optional<std::string> compensated_by;
    bool result_expired = false;

    // Nothing more will happen by itself. Otherwise: do not send it again, do not assume failure.
    [[nodiscard]] bool final() const {
        return status == Status::succeeded || status == Status::failed ||
               status == Status::cancelled;
    }
};

// What get and wait answer.
struct Operation : Receipt {
    std::string tool;
    std::optional<std::string> run_id;
    int attempts = 0;
    std::optional<int> attempt_epoch;
    std::optional<Time> started_at;
    std::optional<Time> finished_at;
    std::optional<std::string> compensates;
    std::optional<std::string> attention;  // why a person must look
};

namespace detail {

inline std::optional<std::string> text(const pqxx::row& row, const char* name) {
    const auto field = row[name];
    return field.is_null() ? std::nullopt : std::optional<std::string>(field.c_str());
}

inline std::optional<Time> time(const pqxx::row& row, const char* name) {
    const auto field = row[name];
    if (field.is_null()) {
        return std::nullopt;
    }
    return Time{std::chrono::microseconds{std::stoll(field.c_str())}};
}

inline void read(const pqxx::row& row, Receipt& into) {
    into.operation_id = row["operation_id"].c_str();
    into.status = parse_status(row["status"].c_str());
    if (const auto replayed = text(row, "replayed")) {
        into.replayed = *replayed == "t";
    }
    into.result = text(row, "result");
    into.error = text(row, "error");
    into.message = row["message"].c_str();
    into.created_at = time(row, "created_at").value();
    into.compensated_by = text(row, "compensated_by");
    into.result_expired = text(row, "result_expired") == "t";
}

inline Operation read_operation(const pqxx::row& row) {
    Operation operation;
    read(row, operation);
    operation.tool = row["tool"].c_str();
    operation.run_id = text(row, "run_id");
    operation.attempts = std::stoi(text(row, "attempts").value_or("0"));
    if (const auto epoch = text(row, "attempt_epoch")) {
        operation.attempt_epoch = std::stoi(*epoch);
    }
    operation.started_at = time(row, "started_at");
    operation.finished_at = time(row, "finished_at");
    operation.compensates = text(row, "compensates");
    operation.attention = text(row, "attention");
    return operation;
}

}  // namespace detail
}  // namespace outboxd
