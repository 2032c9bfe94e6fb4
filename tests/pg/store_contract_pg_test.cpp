#include "outbox/pg/pg_store.hpp"
#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/store_contract.hpp"

namespace {

std::optional<std::string> text_of(std::optional<std::chrono::milliseconds> time) {
    if (!time) return std::nullopt;
    return std::to_string(time->count()) + " ms";
}

class PgDriver : public tests::StoreDriver {
 public:
    PgDriver()
        : sql_(database_.connect()),
          store_(database_.dsn(), outbox::WorkerId(tests::kMe), nullptr) {
        tests::publish_contract_tools(store_);
    }
    outbox::Store& store() override { return store_; }
    void insert(Insert op) override {
        sql_.query(
            "INSERT INTO outbox.operation (operation_id, tool, priority, run_at, expires_at) "
            "VALUES ($1, $2, $3::smallint, now() + $4::interval, now() + $5::interval)",
            {op.id, op.tool, std::to_string(op.priority), text_of(op.run_in), text_of(op.expires_in)
            }
        );
    }
    bool cancel(const std::string& id) override {
        return sql_.text("SELECT outbox.cancel($1)", {id}) == "cancelled";
    }
    bool retry(const std::string& id) override {
        return sql_.text("SELECT outbox.retry($1, 'a test')", {id}) == "armed";
    }
    std::string compensate(const std::string& id) override {
        return sql_.text("SELECT operation_id FROM outbox.compensate($1)", {id});
    }
    void ask(const std::string& id) override {
        sql_.query(
            "UPDATE outbox.queue SET due_at = now(), asked = true WHERE seq = "
            "(SELECT seq FROM outbox.operation WHERE operation_id = $1)",
            {id}
        );
    }
    void pause(const std::string& tool, bool paused) override {
        sql_.query(
            paused ? "SELECT outbox.pause_tool($1, 'a test')" : "SELECT outbox.resume_tool($1)",
            {tool}
        );
    }
    // The clock stands still; everything that was noted moves into the past.
    void pass(std::chrono::milliseconds time) override {
        const auto by = *text_of(time);
        sql_.query(
            "UPDATE outbox.queue SET due_at = due_at - $1::interval, "
            "expires_at = expires_at - $1::interval, attempted_at = attempted_at - $1::interval, "
            "started_at = started_at - $1::interval, deadline_at = deadline_at - $1::interval, "
            "unknown_since = unknown_since - $1::interval, "
            "last_absent_at = last_absent_at - $1::interval",
            {by}
        );
        sql_.query(
            "UPDATE outbox.operation SET created_at = created_at - $1::interval, "
            "run_at = run_at - $1::interval, expires_at = expires_at - $1::interval",
            {by}
        );
        sql_.query("UPDATE outbox.worker SET heartbeat_at = heartbeat_at - $1::interval", {by});
    }
    tests::Seen see(const std::string& id) override {
        const auto row =
            sql_.query(
                    "SELECT coalesce(c.outcome, q.status), coalesce(c.lease_epoch, q.lease_epoch), "
                    "coalesce(c.attempts, q.attempts), coalesce(c.attention, q.attention, ''), "
                    "coalesce(c.result, q.result, 'null'), "
                    "coalesce(CASE WHEN c.seq IS NULL THEN q.error ELSE c.error END ->> 'code', "
                    "''), "
                    "(SELECT coalesce(string_agg(e.kind, ' ' ORDER BY e.id), '') FROM outbox.event "
                    "e "
                    "  WHERE e.operation_id = o.operation_id), "
                    "coalesce(c.ambiguous, q.ambiguous) "
                    "FROM outbox.operation o LEFT JOIN outbox.queue q USING (seq) "
                    "LEFT JOIN outbox.outcome c USING (seq) WHERE o.operation_id = $1",
                    {id}
            )
                .at(0);
        return {
            .status = row[0].value(),
            .epoch = std::stoi(row[1].value()),
            .attempts = std::stoi(row[2].value()),
            .attention = row[3].value(),
            .result = row[4].value(),
            .error = row[5].value(),
            .events = row[6].value(),
            .ambiguous = row[7].value() == "t",
        };
    }
    tests::Session& sql() { return sql_; }

 private:
    tests::Database database_;
    tests::Session sql_;
    outbox::pg::PgStore store_;
};

}  // namespace

TEST_CASE("the store on Postgres keeps the store contract") {
    for (const auto& one : tests::store_contract()) {
        DYNAMIC_SECTION(one.name) {
            PgDriver driver;
            one.run(driver);
        }
    }
}

// The simulation found it: the statement of a connection that broke may be carried out late, when
// the rows it meant were leased and dispatched anew.
TEST_CASE("giving back lost leases is fenced by the epochs that were read") {
    PgDriver d;
    const auto lost = tests::insert_and_lease(d, "op-1");
    const std::string seqs = "{" + std::to_string(lost.intent.seq.value) + "}";
    const auto release = [&] {
        const std::string text = outbox::sql::release_lost_leases;
        return d.sql().text(text, {tests::kMe, seqs, "{1}"});
    };
    REQUIRE(tests::wait_for(d.store().release_lost_leases(outbox::WorkerId(tests::kMe), {})) == 1);
    const auto dispatched = tests::lease_from(d);
    REQUIRE(dispatched.size() == 1);
    CHECK(release() == "0");
    CHECK(tests::state(d, "op-1") == "attempting 3 1");
    CHECK(tests::write(d, tests::success(dispatched[0], "T-1")) == outbox::Fate::applied);
}
