#pragma once

#include <string>

#include "tests/support/session.hpp"

namespace tests {

// A database of its own for one test, dropped with the object, on the server that pg_cluster.sh
// started (OUTBOX_TEST_DSN). The first one in a process migrates a template; the others copy it.
class Database {
 public:
    Database();               // migrated
    static Database empty();  // nothing in it, for tests of the migrator
    ~Database();
    Database(Database&& other) noexcept;
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;
    Database& operator=(Database&&) = delete;

    [[nodiscard]] const std::string& dsn() const { return dsn_; }
    [[nodiscard]] const std::string& name() const { return name_; }
    // The same database as another (cluster-wide) role, e.g. login_as("outbox_planner").
    [[nodiscard]] std::string dsn_as(const std::string& role) const;

    [[nodiscard]] Session connect() const { return Session(dsn_); }
    [[nodiscard]] Session connect_as(const std::string& role) const {
        return Session(dsn_as(role));
    }

 private:
    explicit Database(const std::string& template_name);
    std::string name_;
    std::string dsn_;
};

// Every embedded migration in order, each in one transaction.
void migrate(Session& session);

}  // namespace tests
