// outbox.list and outbox.probe.
#include <chrono>

#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"

using namespace std::chrono_literals;
using tests::bring_to;
using tests::Database;
using tests::Rows;
using tests::Session;

namespace {

const std::vector<std::string> kStatuses{
    "pending", "scheduled", "attempting", "unknown", "succeeded", "failed", "cancelled"
};

void insert(Session& session, const std::string& id, const std::string& tool = "t") {
    session.query("INSERT INTO outbox.operation (operation_id, tool) VALUES ($1, $2)", {id, tool});
}

// The ids that a call of outbox.list answers, in order, separated by blanks.
std::string listed(Session& session, const std::string& arguments) {
    return session.text(
        "SELECT coalesce(string_agg(l.operation_id, ' ' ORDER BY place), '') FROM outbox.list(" +
        arguments + ") WITH ORDINALITY l (" +
        session.text("SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM "
                     "pg_attribute WHERE attrelid = 'outbox.operations'::regclass AND attnum > 0") +
        ", place)"
    );
}

// Rows of our tables that this session has read, one way or the other.
int rows_read(Session& session) {
    return std::stoi(
        session.text("SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM "
                     "pg_stat_xact_user_tables WHERE schemaname = 'outbox'")
    );
}

}  // namespace

TEST_CASE("list finds by every filter what a filter of the view finds, newest first") {
    Database database;
    auto session = database.connect();
    for (const auto& tool : {"t", "mail"}) {
        for (const auto& status : kStatuses) {
            const std::string id = status + "-" + tool;
            insert(session, id, tool);
            bring_to(session, id, status);
        }
    }
    session.run(
        "UPDATE outbox.operation SET created_at = now() - interval '1 day' WHERE seq % 3 = 0; "
        "UPDATE outbox.queue SET attention = 'manual' WHERE status = 'unknown' AND tool = 't'; "
        "UPDATE outbox.outcome SET attention = 'late_effect' WHERE seq % 2 = 0 AND outcome = "
        "'succeeded'"
    );
    std::vector<std::string> filters{"NULL"};
    for (const auto& status : kStatuses) filters.push_back("'{" + status + "}'");
    filters.push_back("'{unknown,failed,pending}'");
    filters.push_back("'{succeeded,cancelled,scheduled,attempting}'");
    auto compare = [&] {
        int compared = 0;
        for (const auto& statuses : filters) {
            for (std::string tool : {"NULL", "'t'", "'mail'", "'none'"}) {
                for (std::string age : {"NULL", "'2 hours'", "'0'"}) {
                    for (std::string attention : {"false", "true"}) {
                        const auto arguments =
                            statuses + ", " + tool + ", " + age + ", " + attention;
                        INFO(arguments);
                        CHECK(
                            listed(session, arguments) ==
                            session.text(
                                "SELECT coalesce(string_agg(operation_id, ' ' ORDER BY seq DESC), "
                                "'') "
                                "FROM outbox.operations WHERE (" +
                                statuses + "::text[] IS NULL OR status = ANY (" + statuses +
                                ")) AND (" + tool + "::text IS NULL OR tool = " + tool + ") AND (" +
                                age + "::interval IS NULL OR created_at < now() - " + age +
                                "::interval) AND (needs_attention OR NOT " + attention + ")"
                            )
                        );
                        ++compared;
                    }
                }
            }
        }
        CHECK(compared == 240);
    };
    compare();
    // What daemons have counted is found by another road; so is what came since.
    session.query("SELECT * FROM outbox.roll_up()");
    CHECK(session.text("SELECT sum(operations) FROM outbox.stretch") == "14");
    compare();
    for (const auto& status : kStatuses) {
        insert(session, status + "-later", "t");
        bring_to(session, status + "-later", status);
    }
    compare();
}

TEST_CASE("the pages of a list hold every row once") {
    Database database;
    auto session = database.connect();
    for (int i = 0; i < 25; ++i) insert(session, "op-" + std::to_string(i));
    std::string seen;
    tests::Value after;
    for (int pages = 0; pages < 10; ++pages) {
        const auto rows = session.query(
            "SELECT operation_id, seq FROM outbox.list(after => $1::bigint, page => 7)", {after}
        );
        if (rows.empty()) break;
        CHECK(rows.size() <= 7);
        for (const auto& row : rows) seen += *row[0] + " ";
        after = rows.back()[1];
    }
    std::string expected;
    for (int i = 24; i >= 0; --i) expected += "op-" + std::to_string(i) + " ";
    CHECK(seen == expected);
}

TEST_CASE("the seq of an age is found by halving, with gaps and with none older or younger") {
    Database database;
    auto session = database.connect();
    auto before = [&](const std::string& age) {
        return session.text("SELECT outbox.last_seq_before(now() - '" + age + "'::interval)");
    };
    CHECK(before("1 day") == "0");
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool, created_at) "
        "SELECT 'op-' || n, 't', now() - (1000 - n) * interval '1 minute' "
        "FROM generate_series(1, 1000) n; "
        "DELETE FROM outbox.operation WHERE seq BETWEEN 300 AND 700 OR seq % 7 = 0 OR seq < 3"
    );
    for (std::string minutes : {"0", "1", "12", "299", "300", "301", "500", "700", "990", "2000"}) {
        INFO(minutes);
        const auto age = minutes + " minutes";
        // Between the last that is older and the first that is not.
        CHECK(
            session.text(
                "SELECT coalesce(max(seq) FILTER (WHERE old), 0) <= $1::bigint AND "
                "coalesce(min(seq) FILTER (WHERE NOT old), 2000) > $1::bigint FROM (SELECT seq, "
                "created_at < now() - $2::interval AS old FROM outbox.operation) o",
                {before(age), age}
            ) == "t"
        );
    }
}

TEST_CASE("a rare tool, rare ends and what is flagged are found without a walk over all rows") {
    Database database;
    auto session = database.connect();
    session.run(
        "ALTER TABLE outbox.operation DISABLE TRIGGER file_work; "
        "INSERT INTO outbox.operation (operation_id, tool, created_at) "
        "SELECT 'op-' || n, CASE WHEN n % 30000 = 1 THEN 'rare' ELSE 't' END, "
        "now() - (100000 - n) * interval '1 minute' FROM generate_series(1, 100000) n; "
        "INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, error) "
        "SELECT seq, CASE WHEN seq % 20000 = 0 THEN 'failed' ELSE 'succeeded' END, 1, 2, '{}' "
        "FROM outbox.operation WHERE seq % 25000 <> 9; "
        "INSERT INTO outbox.queue (seq, tool, priority, status, due_at, unknown_since, attention) "
        "SELECT seq, tool, 0, 'unknown', 'infinity', now(), 'manual' FROM outbox.operation "
        "WHERE seq % 25000 = 9"
    );
    session.run("VACUUM ANALYZE");
    for (int i = 0; i < 6; ++i) session.query("SELECT * FROM outbox.roll_up()");
    auto fetched = [&](const std::string& arguments) {
        session.run("BEGIN");
        const auto before = rows_read(session);
        session.query("SELECT count(*) FROM outbox.list(" + arguments + ")");
        const auto rows = rows_read(session) - before;
        session.run("ROLLBACK");
        return rows;
    };
    CHECK(fetched("") < 2000);
    CHECK(fetched("after => 50000") < 2000);
    CHECK(fetched("'{failed}'") < 2000);
    CHECK(fetched("'{cancelled}'") < 2000);
    CHECK(fetched("'{unknown,pending,attempting,scheduled}'") < 2000);
    CHECK(fetched("attention => true") < 2000);
    // Ten thousand rows more are looked at, for transactions that were open for long.
    CHECK(fetched("'{succeeded}', older_than => '60 days'") < 25'000);
    CHECK(fetched("older_than => '60 days'") < 25'000);
    CHECK(fetched("'{failed}', 'rare'") < 2000);
    CHECK(fetched("'{succeeded}', 'rare'") < 2000);
    CHECK(fetched("NULL, 'rare'") < 2000);
    CHECK(fetched("NULL, 'nobody'") < 2000);
}

TEST_CASE("an end names its tool where there was no effect or a person must look") {
    Database database;
    auto session = database.connect();
    for (std::string status : {"succeeded", "failed", "cancelled"}) {
        insert(session, status, "tool of " + status);
        bring_to(session, status, status);
    }
    const std::string named =
        "SELECT string_agg(e.tool, ', ' ORDER BY e.seq) FROM outbox.outcome e";
    CHECK(session.text(named) == "tool of failed, tool of cancelled");
    // Flagged later, by whatever road, and also where the search_path is hostile.
    session.run(
        "CREATE SCHEMA evil; CREATE FUNCTION evil.never(bigint, bigint) RETURNS boolean LANGUAGE "
        "sql AS 'SELECT false'; CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, "
        "FUNCTION = evil.never); SET search_path = evil, pg_catalog; "
        "UPDATE outbox.outcome SET attention = 'late_effect' WHERE outcome OPERATOR(pg_catalog.=) "
        "'succeeded'; RESET search_path"
    );
    CHECK(session.text(named) == "tool of succeeded, tool of failed, tool of cancelled");
}

// Counted in several calls, beside each other's numbers: a stretch holds its tool's numbers
// exactly.
TEST_CASE("stretches are what is counted, whatever the page of the count") {
    Database database;
    auto session = database.connect();
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) SELECT 'op-' || n, 't-' || n % 3 FROM "
        "generate_series(1, 5000) n"
    );
    int calls = 0;
    while (session.text("SELECT counted FROM outbox.rollup WHERE source = 'operation'") != "5000") {
        session.query("SELECT * FROM outbox.roll_up(700)");
        REQUIRE(++calls < 100);
    }
    CHECK(
        session.query(
            "SELECT tool, block, first, last, operations FROM outbox.stretch ORDER BY 1, 2"
        ) == session.query("SELECT tool, seq / 2048, min(seq), max(seq), count(*) FROM "
                           "outbox.operation GROUP BY 1, 2 ORDER BY 1, 2")
    );
    CHECK(session.text("SELECT count(*) FROM outbox.stretch") == "9");
}

TEST_CASE("probe makes an unknown operation due, also one that waits for a person") {
    Database database;
    auto session = database.connect();
    for (const auto& status : kStatuses) {
        insert(session, status);
        bring_to(session, status, status);
    }
    auto probe = [&](const std::string& id) {
        return session.text("SELECT outbox.probe($1)", {id});
    };
    for (const auto& status : kStatuses) {
        INFO(status);
        CHECK(probe(status) == (status == "unknown" ? "asked" : "not_unknown"));
    }
    CHECK(probe("nothing") == "not_found");
    session.run(
        "UPDATE outbox.queue SET due_at = 'infinity', attention = 'give_up' WHERE status = "
        "'unknown'"
    );
    const std::string row =
        "SELECT lease_epoch, attempt_epoch, due_at <= clock_timestamp(), asked, attention FROM "
        "outbox.queue WHERE status = 'unknown'";
    const auto before = session.query(row)[0];
    CHECK(probe("unknown") == "asked");
    const auto after = session.query(row)[0];
    CHECK(std::stoi(*after[0]) == std::stoi(*before[0]) + 1);
    CHECK(after[1] == before[1]);  // a verdict of somebody who looked does not become stale
    CHECK(after[2] == "t");
    CHECK(after[3] == "t");
    CHECK(after[4] == "give_up");
    CHECK(
        session.query(
            "SELECT kind, actor, detail, epoch = $1::integer FROM outbox.event WHERE "
            "operation_id = 'unknown' ORDER BY id DESC LIMIT 1",
            {after[0]}
        ) == Rows{{"probe", "postgres", R"({"asked": true})", "t"}}
    );
}

TEST_CASE("a probe under way is not disturbed, and one whose prober died is") {
    Database database;
    auto session = database.connect();
    insert(session, "op-1");
    bring_to(session, "op-1", "unknown");
    session.run(
        "UPDATE outbox.queue SET leased_by = gen_random_uuid(), due_at = now() + interval '1 "
        "minute'"
    );
    const auto epoch = session.text("SELECT lease_epoch FROM outbox.queue");
    CHECK(session.text("SELECT outbox.probe('op-1')") == "probing");
    CHECK(session.text("SELECT lease_epoch FROM outbox.queue") == epoch);
    session.run("UPDATE outbox.queue SET due_at = now() - interval '1 second'");
    CHECK(session.text("SELECT outbox.probe('op-1')") == "asked");
}

TEST_CASE("a worker that holds the row is waited for, and what it says counts") {
    Database database;
    auto worker = database.connect();
    auto person = database.connect();
    insert(worker, "op-1");
    bring_to(worker, "op-1", "unknown");
    worker.run("BEGIN");
    tests::end_operation(worker, "op-1", "succeeded", "{}");
    person.send("SELECT outbox.probe('op-1')");
    CHECK(person.still_running(200ms));
    worker.run("COMMIT");
    CHECK(person.receive() == Rows{{"not_unknown"}});
}
