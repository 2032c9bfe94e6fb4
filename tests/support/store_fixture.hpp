#pragma once

#include <memory>
#include <string>
#include <vector>

#include "outbox/pg/pg_store.hpp"
#include "tests/support/database.hpp"
#include "tests/support/wait_for.hpp"

namespace tests {

inline const std::string kWorker = "00000000-0000-0000-0000-000000000001";
inline const std::string kOtherWorker = "00000000-0000-0000-0000-000000000002";

// A migrated database, a store on it as the daemon has it, and a plain session to look behind it.
// The catalogue holds the write tools "ticket" and "mail" and the read tool "look".
class StoreFixture {
 public:
    StoreFixture();

    Database database;
    Session sql;
    outbox::pg::PgStore store;

    // Plain inserts named NAME1 … NAMEn.
    void insert(const std::string& name, int count, const std::string& tool = "ticket");
    std::vector<outbox::LeasedAttempt> lease(const std::string& tool = "ticket", int limit = 10);
    // The only attempt of a fresh operation.
    outbox::LeasedAttempt lease_one(const std::string& id, const std::string& tool = "ticket");
    outbox::Fate complete(outbox::Transition transition);

    // The queue row, "status epoch attempts", or the end, "succeeded epoch attempts".
    std::string state(const std::string& id);
    std::string outcome(const std::string& id, const std::string& column);
    std::string queue(const std::string& id, const std::string& column);
    // Kinds of the operation's events, oldest first, separated by blanks.
    std::string events(const std::string& id);
    std::string detail(const std::string& id, const std::string& kind);
    // As if the lease had run out.
    void outlive_lease(const std::string& id);
};

outbox::Transition transition_of(const outbox::LeasedAttempt& attempt, outbox::Status to);
outbox::Transition succeeded(const outbox::LeasedAttempt& attempt, outbox::Json result);
outbox::Transition failed(const outbox::LeasedAttempt& attempt, std::string code);
outbox::Transition retried(const outbox::LeasedAttempt& attempt, std::chrono::milliseconds due_in);
outbox::Transition unknown(const outbox::LeasedAttempt& attempt);
outbox::ToolPolicy policy(std::string name, outbox::Effect effect = outbox::Effect::write);

}  // namespace tests
