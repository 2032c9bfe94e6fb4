#include "tests/support/store_fixture.hpp"

#include <utility>

namespace tests {

using outbox::EventKind;
using outbox::Json;
using outbox::LeasedAttempt;
using outbox::Status;
using outbox::Transition;
using Evidence = Transition::Evidence;

outbox::ToolPolicy policy(std::string name, outbox::Effect effect) {
    outbox::ToolPolicy policy;
    policy.name = std::move(name);
    policy.effect = effect;
    policy.revision = "1";
    policy.request_hash = 7;
    return policy;
}

StoreFixture::StoreFixture()
    : sql(database.connect()), store(database.dsn(), outbox::WorkerId(kWorker), nullptr) {
    wait_for(store.publish_tools(
        outbox::WorkerId(kWorker),
        {policy("ticket"), policy("mail"), policy("look", outbox::Effect::read)}
    ));
}

void StoreFixture::insert(const std::string& name, int count, const std::string& tool) {
    sql.query(
        "INSERT INTO outbox.operation (operation_id, tool, arguments) "
        "SELECT $1 || n, $2, jsonb_build_object('n', n) FROM generate_series(1, $3::int) n",
        {name, tool, std::to_string(count)}
    );
}

std::vector<LeasedAttempt> StoreFixture::lease(const std::string& tool, int limit) {
    outbox::LeaseRequest request;
    request.worker = outbox::WorkerId(kWorker);
    request.margin = std::chrono::seconds(10);
    request.lanes.push_back(
        {.tool = tool,
         .limit = limit,
         .timeout = std::chrono::seconds(20),
         .request_hash = 7,
         .after = {}}
    );
    return wait_for(store.lease(std::move(request)));
}

LeasedAttempt StoreFixture::lease_one(const std::string& id, const std::string& tool) {
    sql.query("INSERT INTO outbox.operation (operation_id, tool) VALUES ($1, $2)", {id, tool});
    for (auto& attempt : lease(tool, 1000)) {
        if (attempt.intent.id.value == id) {
            return attempt;
        }
    }
    throw std::runtime_error("not leased: " + id);
}

outbox::Fate StoreFixture::complete(Transition transition) {
    return wait_for(store.complete({std::move(transition)})).at(0);
}

std::string StoreFixture::state(const std::string& id) {
    return sql.text(
        "SELECT coalesce(c.outcome || ' ' || c.lease_epoch || ' ' || c.attempts, "
        "                q.status || ' ' || q.lease_epoch || ' ' || q.attempts) "
        "  FROM outbox.operation o LEFT JOIN outbox.queue q USING (seq) "
        "  LEFT JOIN outbox.outcome c USING (seq) WHERE operation_id = $1",
        {id}
    );
}

std::string StoreFixture::outcome(const std::string& id, const std::string& column) {
    return sql
        .value(
            "SELECT (" + column +
                ")::text FROM outbox.outcome c "
                "JOIN outbox.operation o USING (seq) WHERE operation_id = $1",
            {id}
        )
        .value_or("NULL");
}

std::string StoreFixture::queue(const std::string& id, const std::string& column) {
    return sql
        .value(
            "SELECT (" + column +
                ")::text FROM outbox.queue q "
                "JOIN outbox.operation o USING (seq) WHERE operation_id = $1",
            {id}
        )
        .value_or("NULL");
}

std::string StoreFixture::events(const std::string& id) {
    return sql.text(
        "SELECT coalesce(string_agg(kind, ' ' ORDER BY id), '') FROM outbox.event "
        "WHERE operation_id = $1",
        {id}
    );
}

std::string StoreFixture::detail(const std::string& id, const std::string& kind) {
    return sql.text(
        "SELECT detail::text FROM outbox.event WHERE operation_id = $1 AND kind = $2 "
        "ORDER BY id DESC LIMIT 1",
        {id, kind}
    );
}

void StoreFixture::outlive_lease(const std::string& id) {
    sql.query(
        "UPDATE outbox.queue SET due_at = now() - interval '1 second' WHERE seq = "
        "(SELECT seq FROM outbox.operation WHERE operation_id = $1)",
        {id}
    );
}

Transition transition_of(const LeasedAttempt& attempt, Status to) {
    Transition transition;
    transition.seq = attempt.intent.seq;
    transition.id = attempt.intent.id;
    transition.tool = attempt.intent.tool;
    transition.epoch = attempt.epoch;
    transition.to = to;
    return transition;
}

Transition succeeded(const LeasedAttempt& attempt, Json result) {
    auto transition = transition_of(attempt, Status::succeeded);
    transition.result = std::move(result);
    transition.evidence = Evidence::effect;
    return transition;
}

Transition failed(const LeasedAttempt& attempt, std::string code) {
    auto transition = transition_of(attempt, Status::failed);
    transition.error = outbox::Error{std::move(code), "it was refused"};
    transition.evidence = Evidence::no_effect;
    transition.events.push_back({EventKind::failed, Json::Object{}});
    return transition;
}

Transition retried(const LeasedAttempt& attempt, std::chrono::milliseconds due_in) {
    auto transition = transition_of(attempt, Status::scheduled);
    transition.due_in = due_in;
    transition.error = outbox::Error{"not_sent", "connection refused"};
    transition.evidence = Evidence::no_effect;
    transition.events.push_back({EventKind::retry, Json::Object{}});
    return transition;
}

Transition unknown(const LeasedAttempt& attempt) {
    auto transition = transition_of(attempt, Status::unknown);
    transition.due_in = std::chrono::milliseconds(0);
    transition.ambiguous = true;
    transition.cause = outbox::Cause::timeout;
    transition.error = outbox::Error{"timeout", "no answer"};
    transition.events.push_back({EventKind::unknown, Json::Object{}});
    return transition;
}

}  // namespace tests
