#include "tests/support/session.hpp"

#include <libpq-fe.h>
#include <poll.h>
#include <utility>

namespace tests {

namespace {

struct ClearResult {
    void operator()(PGresult* result) const { PQclear(result); }
};
using Result = std::unique_ptr<PGresult, ClearResult>;

std::string field(const PGresult* result, int code) {
    const char* text = PQresultErrorField(result, code);
    return text == nullptr ? "" : text;
}

Rows read(pg_conn* connection, const Result& result) {
    auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        auto state = field(result.get(), PG_DIAG_SQLSTATE);
        if (state.empty()) {
            throw SqlError("08000", PQerrorMessage(connection), "", "");
        }
        throw SqlError(
            state,
            field(result.get(), PG_DIAG_MESSAGE_PRIMARY),
            field(result.get(), PG_DIAG_MESSAGE_DETAIL),
            field(result.get(), PG_DIAG_MESSAGE_HINT)
        );
    }
    Rows rows;
    for (int r = 0; r < PQntuples(result.get()); ++r) {
        Row row;
        for (int c = 0; c < PQnfields(result.get()); ++c) {
            if (PQgetisnull(result.get(), r, c) != 0) {
                row.emplace_back(std::nullopt);
            } else {
                row.emplace_back(PQgetvalue(result.get(), r, c));
            }
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<const char*> pointers(const Row& parameters) {
    std::vector<const char*> all;
    for (const auto& value : parameters) {
        all.push_back(value ? value->c_str() : nullptr);
    }
    return all;
}

}  // namespace

void Session::Close::operator()(pg_conn* connection) const {
    PQfinish(connection);
}

Session::Session(const std::string& dsn)
    : warnings_(std::make_unique<std::vector<std::string>>()),
      connection_(PQconnectdb(dsn.c_str())) {
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
        throw SqlError("08001", PQerrorMessage(connection_.get()), "", "");
    }
    auto keep = [](void* all, const char* text) {
        static_cast<std::vector<std::string>*>(all)->emplace_back(text);
    };
    PQsetNoticeProcessor(connection_.get(), keep, warnings_.get());
    run("SET client_min_messages = warning");
}

Rows Session::query(const std::string& sql, const Row& parameters) {
    send(sql, parameters);
    return receive();
}

Value Session::value(const std::string& sql, const Row& parameters) {
    auto rows = query(sql, parameters);
    if (rows.size() != 1 || rows[0].size() != 1) {
        throw std::logic_error("not one value: " + sql);
    }
    return rows[0][0];
}

std::string Session::text(const std::string& sql, const Row& parameters) {
    auto found = value(sql, parameters);
    if (!found) {
        throw std::logic_error("NULL: " + sql);
    }
    return *found;
}

void Session::run(const std::string& script) {
    Result result(PQexec(connection_.get(), script.c_str()));
    read(connection_.get(), result);
}

void Session::copy_in(const std::string& sql, const std::string& lines) {
    auto* connection = connection_.get();
    Result began(PQexec(connection, sql.c_str()));
    if (PQresultStatus(began.get()) != PGRES_COPY_IN) {
        read(connection, began);
        throw std::logic_error("no COPY FROM STDIN: " + sql);
    }
    PQputCopyData(connection, lines.data(), static_cast<int>(lines.size()));
    PQputCopyEnd(connection, nullptr);
    std::optional<SqlError> refused;
    while (Result ended{PQgetResult(connection)}) {
        try {
            read(connection, ended);
        } catch (const SqlError& error) {
            refused = error;
        }
    }
    if (refused) throw SqlError(*refused);
}

void Session::send(const std::string& sql, const Row& parameters) {
    auto values = pointers(parameters);
    if (PQsendQueryParams(
            connection_.get(),
            sql.c_str(),
            static_cast<int>(values.size()),
            nullptr,
            values.data(),
            nullptr,
            nullptr,
            0
        ) != 1) {
        throw SqlError("08000", PQerrorMessage(connection_.get()), "", "");
    }
}

bool Session::still_running(std::chrono::milliseconds time) {
    auto until = std::chrono::steady_clock::now() + time;
    for (;;) {
        if (PQconsumeInput(connection_.get()) != 1 || PQisBusy(connection_.get()) == 0) {
            return false;
        }
        auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            until - std::chrono::steady_clock::now()
        );
        if (left.count() <= 0) {
            return true;
        }
        pollfd socket{PQsocket(connection_.get()), POLLIN, 0};
        poll(&socket, 1, static_cast<int>(left.count()));
    }
}

Rows Session::receive() {
    Result last;
    while (PGresult* result = PQgetResult(connection_.get())) {
        if (!last || PQresultStatus(last.get()) != PGRES_FATAL_ERROR) {
            last.reset(result);
        } else {
            PQclear(result);
        }
    }
    return read(connection_.get(), last);
}

std::vector<std::string> Session::warnings() {
    return std::exchange(*warnings_, {});
}

std::vector<std::string> Session::notifications() {
    std::vector<std::string> payloads;
    PQconsumeInput(connection_.get());
    while (PGnotify* note = PQnotifies(connection_.get())) {
        payloads.emplace_back(note->extra);
        PQfreemem(note);
    }
    return payloads;
}

int Session::backend() const {
    return PQbackendPID(connection_.get());
}

}  // namespace tests
