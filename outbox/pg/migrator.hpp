#pragma once

#include <span>
#include <string>
#include <vector>

#include "outbox/pg/compat.hpp"
#include "sql/queries.hpp"

// Forward only. Blocking calls for the command line and the daemon's start; throw StoreError.
namespace outbox::pg {

enum class SchemaFit {
    fits,     // every migration of this build is applied (and perhaps newer, harmless ones)
    missing,  // no outbox in this database
    too_old,  // run `outboxd migrate`
    too_new,  // a newer build applied a breaking migration
    altered,  // an applied migration is not the one this build knows under its number
};

struct SchemaState {
    SchemaFit fit = SchemaFit::missing;
    int applied = 0;                   // highest number found
    std::vector<std::string> pending;  // names of this build's migrations that are not applied
    std::string message;               // one sentence for a person; empty when it fits
};

[[nodiscard]] SchemaState schema_state(
    const std::string& dsn, std::span<const sql::Migration> known = sql::migrations()
);

// The same over a connection that is open.
[[nodiscard]] SchemaState schema_state(
    Connection& connection, std::span<const sql::Migration> known = sql::migrations()
);

// Applies what is pending, each migration in one transaction whose first statement is its own row;
// the tables it alters are locked at once; a lock that cannot be had soon is tried again, for about
// a minute, so that a long transaction is not made to queue everybody else behind us. Returns the
// names of what was applied.
std::vector<std::string> migrate(
    const std::string& dsn, std::span<const sql::Migration> known = sql::migrations()
);

// The outbox's roles that the cluster lacks, because the role that migrates may not create any.
[[nodiscard]] std::vector<std::string> missing_roles(const std::string& dsn);

}  // namespace outbox::pg
