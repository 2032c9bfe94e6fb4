#include "tests/support/database.hpp"

#include <unistd.h>
#include <cstdlib>
#include <utility>

#include "sql/queries.hpp"

namespace tests {

namespace {

std::string server_dsn() {
    const char* dsn = std::getenv("OUTBOX_TEST_DSN");
    if (dsn == nullptr || *dsn == '\0') {
        throw std::runtime_error(
            "OUTBOX_TEST_DSN is not set: run these tests under tests/support/pg_cluster.sh"
        );
    }
    return dsn;
}

// Last keyword wins in a libpq connection string.
std::string dsn_of(const std::string& database) {
    return server_dsn() + " dbname=" + database;
}

Session& admin() {
    static Session session(server_dsn());
    return session;
}

std::string unique_name() {
    static int count = 0;
    return "t_" + std::to_string(getpid()) + "_" + std::to_string(++count);
}

// Migrated once per process; nobody may stay connected to it, or it could not be copied.
class Template {
 public:
    Template() : name_("outbox_template_" + std::to_string(getpid())) {
        admin().run("CREATE DATABASE " + name_ + " TEMPLATE template0 ENCODING 'UTF8'");
        try {
            Session session(dsn_of(name_));
            migrate(session);
        } catch (...) {
            admin().run("DROP DATABASE " + name_ + " WITH (FORCE)");
            throw;
        }
    }
    ~Template() {
        try {
            admin().run("DROP DATABASE " + name_ + " WITH (FORCE)");
        } catch (const std::exception&) {
            // The cluster is thrown away anyhow.
            return;
        }
    }
    Template(const Template&) = delete;
    Template& operator=(const Template&) = delete;

    [[nodiscard]] const std::string& name() const { return name_; }

 private:
    std::string name_;
};

const std::string& template_name() {
    admin();  // made first, so it outlives the template
    static Template migrated;
    return migrated.name();
}

}  // namespace

void migrate(Session& session) {
    for (const auto& migration : outbox::sql::migrations()) {
        session.run("BEGIN");
        session.run(migration.text);
        // As the migrator records it: whoever connects checks the schema by these rows.
        session.run(
            "INSERT INTO outbox.migration (number, name, checksum, breaking) VALUES (" +
            std::to_string(migration.number) + ", '" + migration.name + "', '" +
            migration.checksum + "', " + (migration.breaking ? "true" : "false") + ")"
        );
        session.run("COMMIT");
    }
}

Database::Database() : Database(template_name()) {}

Database Database::empty() {
    return Database("template0");
}

Database::Database(const std::string& template_name) : name_(unique_name()), dsn_(dsn_of(name_)) {
    admin().run("CREATE DATABASE " + name_ + " TEMPLATE " + template_name);
}

Database::Database(Database&& other) noexcept
    : name_(std::exchange(other.name_, "")), dsn_(std::move(other.dsn_)) {}

Database::~Database() {
    if (name_.empty()) {
        return;
    }
    try {
        admin().run("DROP DATABASE IF EXISTS " + name_ + " WITH (FORCE)");
    } catch (const std::exception&) {
        // A test that stopped the server has its own failure to report.
        return;
    }
}

std::string Database::dsn_as(const std::string& role) const {
    return dsn_ + " user=" + role;
}

}  // namespace tests
