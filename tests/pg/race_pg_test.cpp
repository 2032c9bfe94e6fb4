// Completion against lease expiry, on real statements and two connections, ten thousand times.
#include <algorithm>
#include <atomic>
#include <exception>
#include <random>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::Fate;
using outbox::Json;
using outbox::LateFate;
using outbox::LeasedAttempt;
using outbox::Status;
using outbox::StoreError;
using outbox::Transition;
using outbox::WorkerId;
using tests::StoreFixture;
using tests::wait_for;

namespace {

constexpr int kRounds = 100;
constexpr int kRacesPerRound = 100;

// Every status an operation takes, in order, written by whoever wrote it, in the same transaction.
constexpr const char* kAudit = R"sql(
CREATE TABLE public.audit (
    id bigint GENERATED ALWAYS AS IDENTITY, seq bigint, status text, epoch integer);
CREATE FUNCTION public.audit_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.audit (seq, status, epoch) VALUES (NEW.seq, NEW.status, NEW.lease_epoch);
    RETURN NULL;
END $$;
CREATE FUNCTION public.audit_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.audit (seq, status, epoch) VALUES (NEW.seq, NEW.outcome, NEW.lease_epoch);
    RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER UPDATE ON outbox.queue FOR EACH ROW
    WHEN (OLD.lease_epoch <> NEW.lease_epoch OR OLD.status <> NEW.status)
    EXECUTE FUNCTION public.audit_queue();
CREATE TRIGGER audit AFTER INSERT OR UPDATE ON outbox.outcome
    FOR EACH ROW EXECUTE FUNCTION public.audit_outcome();
)sql";

Json ticket(const LeasedAttempt& attempt) {
    Json json;
    json.set("id", "T-" + attempt.intent.id.value);
    return json;
}

struct Tally {
    int applied = 0;
    int fenced = 0;
    int found = 0;  // by the prober, before the late answer
};

std::vector<Fate> complete(outbox::pg::PgStore& store, const std::vector<Transition>& batch) {
    for (;;) {
        try {
            return wait_for(store.complete(batch));
        } catch (const StoreError& error) {
            if (error.kind() != StoreError::Kind::conflict) throw;
        }
    }
}

// The worker: small batches of completions; what is fenced becomes evidence.
void complete_all(
    outbox::pg::PgStore& store, const std::vector<LeasedAttempt>& leased, Tally& tally
) {
    for (std::size_t at = 0; at < leased.size();) {
        std::vector<Transition> batch;
        for (const auto end = std::min(leased.size(), at + 1 + at % 5); at < end; ++at) {
            batch.push_back(tests::succeeded(leased[at], ticket(leased[at])));
        }
        const auto fates = complete(store, batch);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (fates.at(i) == Fate::applied) {
                ++tally.applied;
                continue;
            }
            ++tally.fenced;
            // It settles the unknown, or comes after the probe that found the same ticket.
            if (wait_for(store.record_late(batch[i])) == LateFate::duplicate) {
                throw std::runtime_error("a second effect that never was");
            }
        }
    }
}

// The other daemon: declares leases expired, probes what is unknown, finds the ticket.
void expire_and_probe(outbox::pg::PgStore& store, const std::atomic<bool>& done, Tally& tally) {
    while (!done) {
        try {
            wait_for(store.maintain(false));
            auto claims = wait_for(store.claim_probes(
                WorkerId(tests::kOtherWorker), 60s, {{.tool = "ticket", .limit = 10, .timeout = 5s}}
            ));
            std::vector<Transition> batch;
            for (const auto& claim : claims) {
                Transition found;
                found.writer = Transition::Writer::probe;
                found.seq = claim.intent.seq;
                found.id = claim.intent.id;
                found.tool = claim.intent.tool;
                found.epoch = claim.epoch;
                found.to = Status::succeeded;
                found.result.set("id", "T-" + claim.intent.id.value);
                batch.push_back(std::move(found));
            }
            if (batch.empty()) continue;
            for (auto fate : wait_for(store.complete(std::move(batch)))) {
                if (fate == Fate::applied) ++tally.found;
            }
        } catch (const StoreError& error) {
            if (error.kind() != StoreError::Kind::conflict) throw;
        }
    }
}

// Rethrows in the joining thread what ended the other one.
class Other {
 public:
    template <class Work>
    explicit Other(Work work)
        : thread_([this, work] {
              try {
                  work();
              } catch (...) {
                  error_ = std::current_exception();
              }
          }) {}
    void join() {
        thread_.join();
        if (error_) std::rethrow_exception(error_);
    }

 private:
    std::exception_ptr error_;
    std::thread thread_;
};

}  // namespace

TEST_CASE("ten thousand completions race with the end of their lease") {
    StoreFixture t;
    t.sql.run(kAudit);
    outbox::pg::PgStore theirs(t.database.dsn(), WorkerId(tests::kOtherWorker), nullptr);
    std::mt19937 random(4711);  // the order of completions; the races are the machine's
    Tally tally;
    std::chrono::milliseconds window{60};

    for (int round = 0; round < kRounds; ++round) {
        t.insert("r" + std::to_string(round) + "-", kRacesPerRound);
        auto leased = t.lease("ticket", kRacesPerRound);
        REQUIRE(leased.size() == kRacesPerRound);
        std::shuffle(leased.begin(), leased.end(), random);
        // Each lease ends about when its completion comes, on a slow machine as well.
        t.sql.query(
            "UPDATE outbox.queue SET due_at = "
            "clock_timestamp() + random() * $1::int * interval '1 millisecond'",
            {std::to_string(window.count())}
        );
        const auto start = std::chrono::steady_clock::now();
        std::atomic<bool> done = false;
        Other other([&] { expire_and_probe(theirs, done, tally); });
        complete_all(t.store, leased, tally);
        window =
            std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
        done = true;
        other.join();
    }

    INFO(
        "applied " << tally.applied << ", fenced " << tally.fenced << ", found by the probe "
                   << tally.found
    );
    CHECK(tally.applied + tally.fenced == kRounds * kRacesPerRound);
    // Both sides won often enough for this to have been a race.
    CHECK(tally.applied > kRounds * kRacesPerRound / 50);
    CHECK(tally.fenced > kRounds * kRacesPerRound / 50);
    CHECK(tally.found > 0);
    CHECK(t.sql.text("SELECT count(*) FROM outbox.queue") == "0");
    CHECK(
        t.sql.text("SELECT count(*) FROM outbox.outcome WHERE outcome = 'succeeded' "
                   "AND attempts = 1 AND attention IS NULL"
        ) == std::to_string(kRounds * kRacesPerRound)
    );
    CHECK(
        t.sql.text("SELECT count(*) FROM outbox.outcome c JOIN outbox.operation o USING (seq) "
                   "WHERE c.result IS DISTINCT FROM jsonb_build_object('id', 'T-' || operation_id)"
        ) == "0"
    );
    // At most one end, never out of succeeded, epochs that only grow.
    CHECK(
        t.sql.text("SELECT count(*) FROM (SELECT seq FROM public.audit WHERE status = 'succeeded' "
                   "GROUP BY seq HAVING count(*) > 1) twice") == "0"
    );
    CHECK(
        t.sql.text("SELECT count(*) FROM public.audit a JOIN public.audit b USING (seq) "
                   "WHERE a.status = 'succeeded' AND b.id > a.id AND b.status <> 'succeeded'"
        ) == "0"
    );
    CHECK(
        t.sql.text("SELECT count(*) FROM (SELECT epoch - lag(epoch) OVER (PARTITION BY seq "
                   "ORDER BY id) AS step FROM public.audit) s WHERE step <= 0") == "0"
    );
    CHECK(
        t.sql.text("SELECT count(*) FROM outbox.event WHERE kind = 'late_result'") ==
        std::to_string(tally.fenced)
    );
}
