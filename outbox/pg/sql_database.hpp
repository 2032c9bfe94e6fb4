#pragma once

#include <memory>
#include <optional>
#include <string>

#include "outbox/failpoint.hpp"
#include "outbox/sql_database.hpp"

namespace outbox::pg {

// Databases for the sql adapter on libpqxx: each is one lane (a thread with a connection).
class PgDatabases final : public SqlDatabases {
 public:
    // There need not be failpoints.
    PgDatabases(std::string own_dsn, Failpoints* failpoints)
        : own_dsn_(std::move(own_dsn)), failpoints_(failpoints) {}

    std::unique_ptr<SqlDatabase> open(const std::optional<std::string>& dsn) override;

 private:
    std::string own_dsn_;
    Failpoints* failpoints_;
};

}  // namespace outbox::pg
