// Who may do what, as the catalogue says it: every function, table, column, sequence and attribute
// is walked through and held against a list, so that what a later migration grants must be added
// here.
#include <map>
#include <set>

#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"

using tests::Database;
using tests::Session;

namespace {

using Names = std::set<std::string>;

const std::vector<std::string> kRoles{
    "outbox_planner", "outbox_reader", "outbox_operator", "outbox_worker"
};

Names operator+(Names a, const Names& b) {
    a.insert(b.begin(), b.end());
    return a;
}

const Names kPlanning{
    "enqueue", "enqueue_many", "derive_id", "operation_key", "get", "cancel", "compensate"
};
const Names kOperating{
    "retry",
    "resolve",
    "acknowledge",
    "pause_tool",
    "resume_tool",
    "probe",
    "prune_payloads",
    "prune_events",
    "forget_keys"
};
// A view's functions run with the rights of whoever reads it.
const Names kReading{"stats", "status_message", "list"};

// Names, not signatures: there is one function of each name.
const std::map<std::string, Names> kFunctions{
    {"outbox_planner", kPlanning},
    {"outbox_reader", kReading},
    {"outbox_operator", kPlanning + kOperating + kReading},
    {"outbox_worker",
     kPlanning + kOperating + kReading + Names{"arguments_digest", "wake", "roll_up"}},
};

const Names kViews{
    "attention SELECT",
    "backlog SELECT",
    "event SELECT",
    "operations SELECT",
    "tool SELECT",
    "worker SELECT",
};

// "relation PRIVILEGE" for the whole of it.
const std::map<std::string, Names> kRelations{
    {"outbox_planner", {}},
    {"outbox_reader", kViews},
    {"outbox_operator", kViews},
    {"outbox_worker",
     kViews + Names{"event DELETE",   "event INSERT",   "migration SELECT", "operation SELECT",
                    "outcome DELETE", "outcome INSERT", "outcome SELECT",   "outcome UPDATE",
                    "queue DELETE",   "queue INSERT",   "queue SELECT",     "queue UPDATE",
                    "request INSERT", "request SELECT", "request UPDATE",   "retention SELECT",
                    "setting INSERT", "setting SELECT", "setting UPDATE",   "tool INSERT",
                    "tool UPDATE",    "worker DELETE",  "worker INSERT",    "worker UPDATE"}},
};

const Names kSelect{"operation.operation_id SELECT"};
const Names kIntent{
    "operation.arguments INSERT",
    "operation.expires_at INSERT",
    "operation.labels INSERT",
    "operation.max_attempts INSERT",
    "operation.operation_id INSERT",
    "operation.operation_id REFERENCES",
    "operation.priority INSERT",
    "operation.run_at INSERT",
    "operation.run_id INSERT",
    "operation.tool INSERT",
    "operation.traceparent INSERT",
};

// "relation.column PRIVILEGE" beyond what the whole relation gives.
const std::map<std::string, Names> kColumns{
    {"outbox_planner", kIntent + kSelect},
    {"outbox_reader", {}},
    {"outbox_operator", kIntent + kSelect},
    {"outbox_worker",
     kIntent +
         Names{
             "operation.arguments UPDATE",
             "operation.arguments_digest UPDATE",
             "operation.pruned_at UPDATE"
         }},
};

Names names(Session& session, const std::string& sql, const std::string& role) {
    Names found;
    for (const auto& row : session.query(sql, {role})) found.insert(*row[0]);
    return found;
}

}  // namespace

TEST_CASE("every function that a role may call is on its list") {
    Database database;
    auto session = database.connect();
    const auto existing = names(
        session, "SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace", "outbox"
    );
    REQUIRE(existing.size() > 20);
    for (const auto& role : kRoles) {
        INFO(role);
        // What is not there yet needs no right; what is there and on the list has it.
        Names expected;
        for (const auto& name : kFunctions.at(role)) {
            if (existing.count(name) == 1) expected.insert(name);
        }
        CHECK(
            names(
                session,
                "SELECT proname FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace "
                "AND has_function_privilege($1, oid, 'EXECUTE')",
                role
            ) == expected
        );
    }
    // Nobody else: a function is everybody's until it is revoked.
    CHECK(names(
              session,
              "SELECT proname FROM pg_proc WHERE pronamespace = $1::regnamespace "
              "AND has_function_privilege('public', oid, 'EXECUTE')",
              "outbox"
    )
              .empty());
}

TEST_CASE("every right on a relation or a column is on its role's list") {
    Database database;
    auto session = database.connect();
    const auto existing = names(
        session, "SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace", "outbox"
    );
    for (const auto& role : kRoles) {
        INFO(role);
        auto relations = names(
            session,
            "SELECT c.relname || ' ' || p FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', "
            "'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) p "
            "WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p', "
            "'f') "
            "AND has_table_privilege($1, c.oid, p)",
            role
        );
        Names expected;
        for (const auto& right : kRelations.at(role)) {
            if (existing.count(right.substr(0, right.find(' '))) == 1) expected.insert(right);
        }
        if (role == "outbox_worker") {  // it reads every table, also those of later migrations
            for (const auto& name : names(
                     session,
                     "SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace "
                     "AND relkind IN ('r', 'v')",
                     "outbox"
                 )) {
                expected.insert(name + " SELECT");
            }
        }
        CHECK(relations == expected);
        CHECK(
            names(
                session,
                "SELECT c.relname || '.' || a.attname || ' ' || p FROM pg_class c "
                "JOIN pg_attribute a ON a.attrelid = c.oid AND NOT a.attisdropped, "
                "unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) p "
                "WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'v') "
                "AND has_column_privilege($1, c.oid, a.attnum, p) "
                "AND NOT has_table_privilege($1, c.oid, p)",
                role
            ) == kColumns.at(role)
        );
        CHECK(names(
                  session,
                  "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'outbox'::regnamespace "
                  "AND CASE c.relkind WHEN 'S' THEN "
                  "has_sequence_privilege($1, c.oid, 'USAGE, SELECT, UPDATE') END",
                  role
        )
                  .empty());
    }
}

TEST_CASE("the roles are nothing but roles") {
    Database database;
    auto session = database.connect();
    for (const auto& role : kRoles) {
        INFO(role);
        CHECK(
            session.query(
                "SELECT rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, rolreplication, "
                "rolbypassrls FROM pg_roles WHERE rolname = $1",
                {role}
            ) == tests::Rows{{"f", "f", "f", "f", "f", "f"}}
        );
        CHECK(
            session.query(
                "SELECT has_schema_privilege($1, 'outbox', 'USAGE'), "
                "has_schema_privilege($1, 'outbox', 'CREATE'), "
                "has_database_privilege($1, current_database(), 'CREATE')",
                {role}
            ) == tests::Rows{{"t", "f", "f"}}
        );
        // Member of nothing: neither of another role of ours nor of the owner.
        CHECK(names(
                  session,
                  "SELECT r.rolname FROM pg_roles r WHERE r.rolname <> $1 "
                  "AND pg_has_role($1, r.oid, 'MEMBER')",
                  role
        )
                  .empty());
    }
    CHECK(session
              .query("SELECT n FROM unnest(ARRAY['USAGE', 'CREATE']) n "
                     "WHERE has_schema_privilege('public', 'outbox', n)")
              .empty());
}
