#include "outbox/pg/doctor.hpp"

#include <chrono>

#include "outbox/pg/migrator.hpp"
#include "outbox/pg/pg_error.hpp"
#include "outbox/pg/session.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

constexpr SessionSettings kPatient{
    .statement_timeout = std::chrono::minutes(1), .lock_timeout = std::chrono::seconds(5)
};

void read(const pqxx::result& rows, std::vector<Finding>& findings) {
    for (const auto& row : rows) {
        Finding finding{
            .name = row["name"].c_str(),
            .level = row["level"].c_str(),
            .detail = row["detail"].c_str(),
            .fix = std::nullopt,
        };
        if (!row["fix"].is_null()) finding.fix = row["fix"].c_str();
        findings.push_back(std::move(finding));
    }
}

std::string now_in_microseconds() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

// Empty: this role may not see which migrations are applied.
std::optional<SchemaState> state_of(Session& session) {
    try {
        return schema_state(session.connection());
    } catch (const SqlError& error) {
        if (error.sqlstate() == "42501") return std::nullopt;
        throw;
    }
}

Finding schema_finding(const std::optional<SchemaState>& state) {
    Finding finding{.name = "schema", .level = "ok", .detail = "", .fix = std::nullopt};
    if (!state) {
        finding.level = "warn";
        finding.detail = "this role may not see which migrations are applied";
        finding.fix = "ask as the daemon's role (outbox_worker) or as the owner of the schema";
    } else if (state->fit == SchemaFit::fits) {
        finding.detail = "all migrations of this version are applied";
    } else {
        finding.level = "bad";
        finding.detail = state->message;
        const bool behind = state->fit == SchemaFit::missing || state->fit == SchemaFit::too_old;
        finding.fix = behind ? "outboxd migrate" : "run the version that migrated this database";
    }
    return finding;
}

}  // namespace

std::vector<Finding> examine(const std::string& dsn) {
    Session session(dsn, kPatient, nullptr);
    std::vector<Finding> findings;
    read(session.read(sql::examine_server, {now_in_microseconds()}), findings);
    const auto state = state_of(session);
    findings.push_back(schema_finding(state));
    if (state && state->fit != SchemaFit::fits) return findings;
    try {
        read(session.read(sql::examine_outbox, {}), findings);
    } catch (const SqlError& error) {
        if (error.sqlstate() != "42501") throw;
        findings.push_back(
            {.name = "rights",
             .level = "warn",
             .detail = "this role may not look into the outbox: " + error.message(),
             .fix = "as the owner of the schema: GRANT outbox_reader TO this role"}
        );
    }
    return findings;
}

}  // namespace outbox::pg
