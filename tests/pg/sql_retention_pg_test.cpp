// Pruning and forgetting: what goes, what stays and still answers, and who may be at work
// meanwhile.
#include <chrono>

#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"
#include "tests/support/refusal.hpp"

using namespace std::chrono_literals;
using tests::bring_to;
using tests::Database;
using tests::refusal;
using tests::Row;
using tests::Rows;
using tests::Session;

namespace {

// A tool with a compensation, and one operation of it with arguments.
struct Outbox {
    Outbox() : session(database.connect()) {
        session.run(
            "INSERT INTO outbox.tool (tool, effect, revision, compensations) VALUES "
            "('t', 'write', 'r', '{undo}'), ('t:undo', 'write', 'r', '{}')"
        );
    }
    void insert(const std::string& id, const std::string& status = "succeeded") {
        session.query("SELECT outbox.enqueue('t', '{\"n\": 1}', $1)", {id});
        bring_to(session, id, status);
    }
    // As if it had ended (and begun) long ago.
    void age(const std::string& id, const std::string& interval = "40 days") {
        session.query(
            "WITH o AS (UPDATE outbox.operation SET created_at = now() - $2::interval - interval "
            "'1 minute' WHERE operation_id = $1 RETURNING seq) UPDATE outbox.outcome e SET "
            "finished_at = now() - $2::interval FROM o WHERE e.seq = o.seq",
            {id, interval}
        );
    }
    int prune(const std::string& older_than = "30 days", int page = 200) {
        int pruned = 0;
        std::string after = "0";
        for (bool more = true; more;) {
            const auto row = session.query(
                "SELECT pruned, next, more, busy FROM outbox.prune_payloads($1::interval, "
                "$2::bigint, $3::integer)",
                {older_than, after, std::to_string(page)}
            )[0];
            REQUIRE(row[3] == "f");
            pruned += std::stoi(*row[0]);
            after = *row[1];
            more = row[2] == "t";
        }
        return pruned;
    }
    // Keys that were forgotten, keys that are pointed at.
    std::pair<int, int> forget(const std::string& older_than = "30 days", bool dry_run = false) {
        const auto row = session.query(
            "SELECT sum(forgotten), sum(referenced) FROM outbox.forget_keys($1::interval, 0, 1000, "
            "$2::boolean)",
            {older_than, dry_run ? "t" : "f"}
        )[0];
        return {std::stoi(*row[0]), std::stoi(*row[1])};
    }
    std::string pruned() {
        return session.text(
            "SELECT coalesce(string_agg(operation_id, ' ' ORDER BY seq), '') FROM outbox.operation "
            "WHERE pruned_at IS NOT NULL"
        );
    }
    std::string ids() {
        return session.text(
            "SELECT coalesce(string_agg(operation_id, ' ' ORDER BY seq), '') FROM outbox.operation"
        );
    }

    Database database;
    Session session;
};

// Rows of our tables that this session has read, one way or the other.
int rows_read(Session& session) {
    return std::stoi(
        session.text("SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM "
                     "pg_stat_xact_user_tables WHERE schemaname = 'outbox'")
    );
}

}  // namespace

TEST_CASE("what is pruned is a tombstone: it replays, and knows its arguments by their digest") {
    Outbox t;
    t.insert("old");
    t.insert("young");
    t.age("old");
    CHECK(t.prune() == 1);
    CHECK(t.pruned() == "old");
    CHECK(
        t.session.query(
            "SELECT arguments, arguments_digest = outbox.arguments_digest('{\"n\": 1}'), "
            "tool, created_at IS NOT NULL FROM outbox.operation WHERE operation_id = "
            "'old'"
        ) == Rows{{"{}", "t", "t", "t"}}
    );
    CHECK(
        t.session.query("SELECT status, replayed, result, result_expired, message FROM "
                        "outbox.enqueue('t', '{\"n\": 1.0}', 'old')") ==
        Rows{
            {"succeeded",
             "t",
             {},
             "t",
             "This action was already performed under this operation id; its result is no longer "
             "kept. Nothing was executed again."}
        }
    );
    CHECK(
        refusal(t.session, "SELECT outbox.enqueue('t', '{\"n\": 2}', 'old')").sqlstate == "OB422"
    );
    CHECK(t.session.text("SELECT result FROM outbox.get('young')") == R"({"id": "T-1"})");
    CHECK(t.prune() == 0);
}

TEST_CASE("what is open, flagged, too young or to be undone keeps its payload, until it may go") {
    Outbox t;
    for (std::string id : {"flagged", "undone", "failed", "cancelled"}) {
        t.insert(id, id == "flagged" || id == "undone" ? "succeeded" : id);
        t.age(id);
    }
    for (std::string status : {"pending", "scheduled", "attempting", "unknown"}) {
        t.insert(status, status);
        t.age(status);
    }
    t.insert("ended-yesterday");
    t.age("ended-yesterday");
    t.session.run(
        "UPDATE outbox.outcome SET finished_at = now() - interval '1 day' FROM outbox.operation o "
        "WHERE o.seq = outcome.seq AND operation_id = 'ended-yesterday'; "
        "UPDATE outbox.outcome SET attention = 'late_effect' FROM outbox.operation o WHERE o.seq = "
        "outcome.seq AND operation_id = 'flagged'"
    );
    t.session.query("SELECT outbox.compensate('undone', 'undo')");
    t.session.query("SELECT * FROM outbox.roll_up()");
    t.session.query("SELECT * FROM outbox.roll_up()");
    CHECK(t.prune("30 days", 3) == 2);
    CHECK(t.pruned() == "failed cancelled");
    // The mark has passed them; they are noted.
    CHECK(t.session.text("SELECT pruned_to > 8 FROM outbox.retention") == "t");
    CHECK(t.session.text("SELECT count(*) FROM outbox.unpruned") == "7");
    CHECK(t.prune("30 days", 3) == 0);

    t.session.query("SELECT outbox.acknowledge('flagged', 'seen', 'ann')");
    tests::end_operation(t.session, "undone:compensate:undo", "succeeded", "{}");
    tests::end_operation(t.session, "unknown", "succeeded", "{}");
    t.age("unknown");
    t.age("ended-yesterday");
    CHECK(t.prune("30 days", 3) == 4);
    CHECK(t.session.text("SELECT count(*) FROM outbox.unpruned") == "3");
    CHECK(
        t.session.text("SELECT string_agg(operation_id, ' ' ORDER BY seq) FROM outbox.operation "
                       "JOIN outbox.unpruned USING (seq)") == "pending scheduled attempting"
    );
}

TEST_CASE("what commits late is pruned all the same") {
    Outbox t;
    t.session.query("SELECT * FROM outbox.roll_up()");
    auto planner = t.database.connect();
    planner.run("BEGIN; SELECT outbox.enqueue('t', '{\"n\": 1}', 'slow')");
    t.insert("quick");
    t.age("quick");
    t.session.query("SELECT * FROM outbox.roll_up()");
    CHECK(t.prune() == 1);
    planner.run("COMMIT");
    bring_to(t.session, "slow", "succeeded");
    t.age("slow");
    CHECK(t.prune() == 1);
    CHECK(t.pruned() == "slow quick");
}

TEST_CASE("one prunes at a time, and a row that somebody holds is passed over") {
    Outbox t;
    t.insert("held");
    t.insert("free");
    t.age("held");
    t.age("free");
    auto other = t.database.connect();
    other.run("BEGIN; SELECT 1 FROM outbox.retention FOR UPDATE");
    CHECK(
        t.session.query("SELECT pruned, next, busy FROM outbox.prune_payloads('30 days', 0)") ==
        Rows{{"0", "0", "t"}}
    );
    other.run("ROLLBACK");
    other.run(
        "BEGIN; SELECT 1 FROM outbox.outcome e JOIN outbox.operation o USING (seq) WHERE "
        "operation_id = 'held' FOR UPDATE OF e"
    );
    CHECK(t.prune() == 1);
    CHECK(t.pruned() == "free");
    other.run("ROLLBACK");
    CHECK(t.prune() == 1);
}

TEST_CASE("a failed operation never runs with what pruning left of its arguments") {
    Outbox t;
    t.insert("op-1", "failed");
    t.insert("empty", "failed");
    t.session.run("UPDATE outbox.operation SET arguments = '{}' WHERE operation_id = 'empty'");
    t.age("op-1");
    t.age("empty");
    REQUIRE(t.prune() == 2);
    CHECK(t.session.text("SELECT outbox.retry('op-1', 'r')") == "pruned");
    CHECK(t.session.text("SELECT status FROM outbox.get('op-1')") == "failed");
    // Nothing was lost there.
    CHECK(t.session.text("SELECT outbox.retry('empty', 'r')") == "armed");
    // Who has the arguments brings them back.
    CHECK(
        refusal(t.session, "SELECT outbox.enqueue('t', '{\"n\": 2}', 'op-1', retry_failed => true)")
            .sqlstate == "OB422"
    );
    CHECK(
        t.session.query("SELECT status, replayed FROM outbox.enqueue('t', '{\"n\": 1}', 'op-1', "
                        "retry_failed => true)") == Rows{{"pending", "f"}}
    );
    CHECK(
        t.session.query("SELECT arguments, arguments_digest, pruned_at FROM outbox.operation WHERE "
                        "operation_id = 'op-1'") == Rows{{R"({"n": 1})", {}, {}}}
    );
    tests::bring_to(t.session, "op-1", "succeeded");
    t.age("op-1");
    CHECK(t.prune() == 1);  // also behind the mark
}

TEST_CASE("with a derived id other arguments than the pruned ones arm nothing") {
    Outbox t;
    t.session.run("UPDATE outbox.tool SET dedup_fields = '{a}' WHERE tool = 't'");
    const auto id = t.session.text(
        "SELECT operation_id FROM outbox.enqueue('t', '{\"a\": 1, \"b\": 1}', run_id => 'r')"
    );
    bring_to(t.session, id, "failed");
    t.age(id);
    REQUIRE(t.prune() == 1);
    const auto refused = refusal(
        t.session,
        "SELECT outbox.enqueue('t', '{\"a\": 1, \"b\": 2}', run_id => 'r', retry_failed => true)"
    );
    CHECK(refused.sqlstate == "OB410");
    CHECK_FALSE(refused.hint.empty());
    CHECK(t.session.text("SELECT status FROM outbox.get($1)", {id}) == "failed");
}

TEST_CASE("who arms while somebody prunes sees what became of the arguments") {
    for (std::string level : {"READ COMMITTED", "REPEATABLE READ"}) {
        INFO(level);
        Outbox t;
        t.insert("op-1", "failed");
        t.age("op-1");
        auto person = t.database.connect();
        person.run("BEGIN ISOLATION LEVEL " + level + "; SELECT 1");
        t.session.run("BEGIN; SELECT outbox.prune_payloads('30 days', 0)");
        person.send("SELECT outbox.retry('op-1', 'r')");
        CHECK(person.still_running(200ms));
        t.session.run("COMMIT");
        std::string answer;
        try {
            answer = *person.receive()[0][0];
        } catch (const tests::SqlError& error) {
            answer = error.sqlstate;
        }
        CHECK(answer == (level == "READ COMMITTED" ? "pruned" : "40001"));
        person.run("ROLLBACK");
        CHECK(t.session.text("SELECT status FROM outbox.get('op-1')") == "failed");
    }
}

TEST_CASE("who compensates while somebody prunes is refused, or first") {
    Outbox t;
    t.insert("op-1");
    t.insert("op-2");
    t.age("op-1");
    t.age("op-2");
    auto planner = t.database.connect();
    t.session.run("BEGIN; SELECT outbox.prune_payloads('30 days', 0, 1)");
    planner.send("SELECT outbox.compensate('op-1', 'undo')");
    CHECK(planner.still_running(200ms));
    t.session.run("COMMIT");
    CHECK_THROWS_WITH(planner.receive(), ContainsSubstring("OB410"));
    planner.run("BEGIN; SELECT outbox.compensate('op-2', 'undo')");
    CHECK(t.prune() == 0);
    planner.run("COMMIT");
    CHECK(t.prune() == 0);
    CHECK(t.pruned() == "op-1");
}

TEST_CASE("old events go, but not those of what is open or flagged, nor uncounted replays") {
    Outbox t;
    for (std::string id : {"done", "flagged"}) t.insert(id);
    t.insert("open", "unknown");
    t.session.run(
        "UPDATE outbox.outcome SET attention = 'duplicate_effect' FROM outbox.operation o WHERE "
        "o.seq = outcome.seq AND operation_id = 'flagged'; "
        "INSERT INTO outbox.event (operation_id, kind, at) SELECT i, k, now() - interval '100 "
        "days' "
        "FROM unnest('{done,flagged,open,gone}'::text[]) i, unnest('{probe,replayed}'::text[]) k; "
        "INSERT INTO outbox.event (operation_id, kind) VALUES ('done', 'probe'); "
        "INSERT INTO outbox.worker (worker, name, version, heartbeat_at) VALUES "
        "(gen_random_uuid(), 'old', '1', now() - interval '100 days'), "
        "(gen_random_uuid(), 'new', '1', now())"
    );
    auto prune = [&] {
        int pruned = 0;
        std::string after = "0";
        for (bool more = true; more;) {
            const auto row = t.session.query(
                "SELECT pruned, next, more FROM outbox.prune_events('90 days', $1::bigint, 3)",
                {after}
            )[0];
            pruned += std::stoi(*row[0]);
            after = *row[1];
            more = row[2] == "t";
        }
        return pruned;
    };
    CHECK(prune() == 2);  // the probes of done and gone
    t.session.query("SELECT * FROM outbox.roll_up()");
    t.session.query("SELECT * FROM outbox.roll_up()");
    CHECK(prune() == 2);  // their replays, now that they are counted
    CHECK(
        t.session.text("SELECT string_agg(operation_id || ' ' || kind, ', ' ORDER BY operation_id, "
                       "kind) FROM outbox.event WHERE at < now() - interval '90 days'"
        ) == "flagged probe, flagged replayed, open probe, open replayed"
    );
    CHECK(t.session.text("SELECT count(*) FROM outbox.event WHERE operation_id = 'done'") == "1");
    CHECK(t.session.text("SELECT string_agg(name, ' ') FROM outbox.worker") == "new");
}

TEST_CASE("forgetting takes old final operations with their traces, and counts them before") {
    Outbox t;
    for (std::string id : {"a", "b", "flagged"}) {
        t.insert(id);
        t.age(id);
    }
    t.insert("young");
    t.insert("open", "unknown");
    t.age("open");
    t.session.run(
        "UPDATE outbox.outcome SET attention = 'late_effect' FROM outbox.operation o WHERE o.seq = "
        "outcome.seq AND operation_id = 'flagged'; "
        "INSERT INTO outbox.event (operation_id, kind) VALUES ('a', 'probe'), ('young', 'probe')"
    );
    CHECK(t.forget("30 days", true) == std::pair(2, 0));
    CHECK(t.ids() == "a b flagged young open");
    CHECK(t.forget() == std::pair(2, 0));
    CHECK(t.ids() == "flagged young open");
    CHECK(t.session.text("SELECT count(*) FROM outbox.outcome") == "2");
    CHECK(t.session.text("SELECT string_agg(operation_id, ' ') FROM outbox.event") == "young");
    // That is what it means.
    CHECK(t.session.text("SELECT replayed FROM outbox.enqueue('t', '{\"n\": 1}', 'a')") == "f");
}

TEST_CASE("an original and its compensations are forgotten together or not at all") {
    Outbox t;
    for (std::string id : {"both", "undoing", "undone-lately"}) {
        t.insert(id);
        t.session.query("SELECT outbox.compensate($1, 'undo')", {id});
        if (id != "undoing") {
            tests::end_operation(t.session, id + ":compensate:undo", "succeeded", "{}");
        }
        t.age(id);
    }
    t.age("both:compensate:undo");
    CHECK(t.forget() == std::pair(1, 0));
    CHECK(t.ids() == "undoing undoing:compensate:undo undone-lately undone-lately:compensate:undo");
    CHECK(t.session.text("SELECT count(*) FROM outbox.queue") == "1");
}

TEST_CASE("what a planner's table points at is kept, whenever its constraint is checked") {
    for (std::string when : {"", " DEFERRABLE INITIALLY DEFERRED"}) {
        INFO(when);
        Outbox t;
        for (std::string id : {"a", "b", "c"}) {
            t.insert(id);
            t.age(id);
        }
        t.session.run(
            "CREATE TABLE step (operation_id text REFERENCES outbox.operation (operation_id)" +
            when + "); INSERT INTO step VALUES ('b')"
        );
        CHECK(t.forget() == std::pair(2, 1));
        CHECK(t.ids() == "b");
        CHECK(t.session.text("SELECT count(*) FROM outbox.outcome") == "1");
    }
}

TEST_CASE("who arms a compensation while its original is forgotten keeps both") {
    Outbox t;
    t.insert("op-1");
    t.session.query("SELECT outbox.compensate('op-1', 'undo')");
    tests::end_operation(
        t.session, "op-1:compensate:undo", "failed", {}, R"({"code": "x", "message": "y"})"
    );
    t.age("op-1");
    t.age("op-1:compensate:undo");
    auto person = t.database.connect();
    person.run("BEGIN; SELECT outbox.retry('op-1:compensate:undo', 'r')");
    CHECK(t.forget() == std::pair(0, 0));
    person.run("COMMIT");
    CHECK(t.forget() == std::pair(0, 0));
    CHECK(t.ids() == "op-1 op-1:compensate:undo");
}

TEST_CASE("who compensates while the original is forgotten learns that it is gone") {
    Outbox t;
    t.insert("op-1");
    t.age("op-1");
    auto planner = t.database.connect();
    t.session.run("BEGIN; SELECT outbox.forget_keys('30 days', 0)");
    planner.send("SELECT outbox.compensate('op-1', 'undo')");
    CHECK(planner.still_running(200ms));
    t.session.run("COMMIT");
    CHECK_THROWS_WITH(planner.receive(), ContainsSubstring("OB404"));
    CHECK(t.ids().empty());
}

TEST_CASE("pruning and forgetting walk no table") {
    Outbox t;
    t.session.run(
        "ALTER TABLE outbox.operation DISABLE TRIGGER file_work; "
        "INSERT INTO outbox.operation (operation_id, tool, arguments, created_at) "
        "SELECT 'op-' || n, 't', '{\"n\": 1}', now() - interval '100 days' + n * interval '1 s' "
        "FROM generate_series(1, 20000) n; "
        "INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, result, finished_at) "
        "SELECT seq, 'succeeded', 1, 2, '{}', created_at FROM outbox.operation; "
        "INSERT INTO outbox.event (operation_id, kind, at) SELECT operation_id, 'probe', "
        "created_at "
        "FROM outbox.operation"
    );
    for (bool analysed : {false, true}) {
        if (analysed) t.session.run("ANALYZE");
        for (std::string call :
             {"SELECT outbox.prune_payloads('30 days', 0, 100)",
              "SELECT outbox.prune_payloads('30 days', 10000, 100)",
              "SELECT outbox.prune_events('30 days', 0, 100)",
              "SELECT outbox.prune_events('30 days', 10000, 100)",
              "SELECT outbox.forget_keys('30 days', 0, 100)",
              "SELECT outbox.forget_keys('30 days', 10000, 100)"}) {
            INFO(call << (analysed ? ", analysed" : ""));
            t.session.run("BEGIN");
            const auto before = rows_read(t.session);
            t.session.query(call);
            CHECK(rows_read(t.session) - before < 3000);
            t.session.run("ROLLBACK");
        }
    }
}
