#include "outbox/pg/migrator.hpp"

#include <algorithm>
#include <chrono>
#include <regex>
#include <thread>

#include "outbox/pg/compat.hpp"
#include "outbox/pg/dsn.hpp"
#include "outbox/pg/pg_error.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;  // in short tries, with a pause between
constexpr auto kPause = 500ms;

struct Applied {
    int number = 0;
    std::string name;
    std::string checksum;
    bool breaking = false;
};

std::vector<Applied> applied_migrations(pqxx::transaction_base& transaction) {
    std::vector<Applied> all;
    if (!execute(transaction, sql::schema_exists, {})[0][0].as<bool>()) {
        return all;
    }
    for (const auto& row : execute(transaction, sql::list_migrations, {})) {
        all.push_back(
            {row[0].as<int>(), row[1].as<std::string>(), row[2].as<std::string>(), row[3].as<bool>()
            }
        );
    }
    return all;
}

SchemaState compare(const std::vector<Applied>& applied, std::span<const sql::Migration> known) {
    SchemaState state;
    for (const auto& migration : known) {
        auto found = std::find_if(applied.begin(), applied.end(), [&](const Applied& a) {
            return a.number == migration.number;
        });
        if (found == applied.end()) {
            state.pending.push_back(migration.name);
        } else if (found->checksum != migration.checksum) {
            state.fit = SchemaFit::altered;
            state.message = "Migration " + found->name + " in the database is not the " +
                            migration.name + " of this build.";
        }
    }
    state.applied = applied.empty() ? 0 : applied.back().number;
    if (state.fit == SchemaFit::altered) {
        return state;
    }
    const int newest = known.empty() ? 0 : known.back().number;
    auto breaking = std::find_if(applied.begin(), applied.end(), [&](const Applied& a) {
        return a.breaking && a.number > newest;
    });
    if (applied.empty()) {
        state.fit = SchemaFit::missing;
        state.message = "There is no outbox in this database: run `outboxd migrate`.";
    } else if (breaking != applied.end()) {
        state.fit = SchemaFit::too_new;
        state.message = "Migration " + breaking->name + " needs a newer outboxd.";
    } else if (!state.pending.empty()) {
        state.fit = SchemaFit::too_old;
        state.message =
            "Migration " + state.pending.front() + " is not applied: run `outboxd migrate`.";
    } else {
        state.fit = SchemaFit::fits;
    }
    return state;
}

// True when the row was written now; false when another migrator had written it.
bool record(pqxx::transaction_base& transaction, const sql::Migration& migration) {
    auto rows = execute(
        transaction,
        sql::record_migration,
        {std::to_string(migration.number),
         migration.name,
         migration.checksum,
         migration.breaking ? "t" : "f"}
    );
    return !rows.empty();
}

// What a migration alters, or hangs triggers and indexes on.
std::string named_tables(const std::string& text) {
    static const std::regex kTable(R"((?:TABLE|ON) (?:ONLY )?outbox\.([a-z_]+))");
    std::string names;
    for (std::sregex_iterator one(text.begin(), text.end(), kTable), end; one != end; ++one) {
        names += (names.empty() ? "" : ",") + (*one)[1].str();
    }
    return names;
}

// All of them at once and before anything else: locked one by one as the statements come, they
// could be waited for crosswise with a planner's transaction, and Postgres would end one of the
// two.
void lock_tables(pqxx::transaction_base& transaction, const std::string& text) {
    std::string tables;
    for (const auto& row : execute(transaction, sql::tables_among, {named_tables(text)})) {
        tables += (tables.empty() ? "outbox." : ", outbox.") + row[0].as<std::string>();
    }
    if (tables.empty()) return;
    execute(transaction, sql::bound_locking, {"t"});
    transaction.exec("LOCK TABLE " + tables + " IN ACCESS EXCLUSIVE MODE");
    execute(transaction, sql::bound_locking, {"f"});
}

// Somebody else is in the way, and may not be a moment later.
bool is_in_the_way(const std::string& sqlstate) {
    return kind_of(sqlstate) == StoreError::Kind::conflict || sqlstate == "57014";
}

// One migration, or nothing when another migrator was first. Its row comes before its statements;
// only the first one has to make the table of the rows, under the same lock.
bool apply(Connection& connection, const sql::Migration& migration) {
    pqxx::work transaction(connection);
    execute(transaction, sql::pin_search_path, {});
    execute(transaction, sql::lock_migrations, {});
    bool found = execute(transaction, sql::schema_exists, {})[0][0].as<bool>();
    if (found && !record(transaction, migration)) {
        return false;
    }
    if (found) lock_tables(transaction, migration.text);
    transaction.exec(migration.text);
    if (!found) {
        record(transaction, migration);
    }
    transaction.commit();
    return true;
}

bool apply_with_patience(Connection& connection, const sql::Migration& migration) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    for (;; std::this_thread::sleep_for(kPause)) {
        try {
            return apply(connection, migration);
        } catch (const std::exception& error) {
            if (!is_in_the_way(sqlstate_of(error))) throw;
            if (std::chrono::steady_clock::now() < end) continue;
            throw StoreError(
                StoreError::Kind::conflict,
                "Migration " + migration.name + " did not get its locks within a minute: " +
                    error.what() + " End the transaction that holds them, and migrate again."
            );
        }
    }
}

}  // namespace

SchemaState schema_state(const std::string& dsn, std::span<const sql::Migration> known) {
    try {
        Connection connection(with_defaults(dsn));
        return schema_state(connection, known);
    } catch (const std::exception& error) {
        rethrow_as_store_error(error, During::read);
    }
}

SchemaState schema_state(Connection& connection, std::span<const sql::Migration> known) {
    try {
        pqxx::work transaction(connection);
        execute(transaction, sql::pin_search_path, {});
        return compare(applied_migrations(transaction), known);
    } catch (const std::exception& error) {
        rethrow_as_store_error(error, During::read);
    }
}

std::vector<std::string> migrate(const std::string& dsn, std::span<const sql::Migration> known) {
    try {
        auto before = schema_state(dsn, known);
        if (before.fit == SchemaFit::altered || before.fit == SchemaFit::too_new) {
            throw StoreError(StoreError::Kind::bug, before.message);
        }
        std::vector<std::string> names;
        if (before.fit == SchemaFit::fits) {
            return names;
        }
        Connection connection(with_defaults(dsn));
        for (const auto& migration : known) {
            if (apply_with_patience(connection, migration)) {
                names.push_back(migration.name);
            }
        }
        return names;
    } catch (const std::exception& error) {
        rethrow_as_store_error(error, During::write);
    }
}

std::vector<std::string> missing_roles(const std::string& dsn) {
    try {
        Connection connection(with_defaults(dsn));
        pqxx::work transaction(connection);
        execute(transaction, sql::pin_search_path, {});
        std::vector<std::string> names;
        for (const auto& row : execute(transaction, sql::missing_roles, {})) {
            names.push_back(row[0].as<std::string>());
        }
        return names;
    } catch (const std::exception& error) {
        rethrow_as_store_error(error, During::read);
    }
}

}  // namespace outbox::pg
