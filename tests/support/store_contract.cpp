#include "tests/support/store_contract.hpp"

#include <utility>

#include "tests/support/catch.hpp"

namespace tests {

using namespace outbox;
using namespace std::chrono_literals;

const std::vector<StoreCase>& store_contract() {
    static const auto all = [] {
        std::vector<StoreCase> cases;
        for (const auto& part :
             {lease_contract(),
              write_contract(),
              late_contract(),
              maintenance_contract(),
              compensation_contract(),
              request_contract()}) {
            cases.insert(cases.end(), part.begin(), part.end());
        }
        return cases;
    }();
    return all;
}

ToolPolicy contract_policy(const std::string& name, Effect effect) {
    ToolPolicy policy;
    policy.name = name;
    policy.effect = effect;
    policy.revision = "1";
    policy.request_hash = 7;
    return policy;
}

void publish_contract_tools(Store& store) {
    auto ticket = contract_policy("ticket");
    ticket.compensations = {"undo"};
    auto undo = contract_policy("ticket:undo");
    undo.compensation = true;
    wait_for(store.publish_tools(
        WorkerId(kMe),
        {ticket, undo, contract_policy("mail"), contract_policy("look", Effect::read)}
    ));
}

std::vector<LeasedAttempt> lease_from(
    StoreDriver& d, const std::string& tool, int limit, const std::string& worker, LeaseMark after
) {
    LeaseRequest request{.worker = WorkerId(worker), .margin = 10s, .lanes = {}};
    request.lanes.push_back(
        {.tool = tool, .limit = limit, .timeout = 20s, .request_hash = 7, .after = after}
    );
    return wait_for(d.store().lease(std::move(request)));
}

LeasedAttempt insert_and_lease(StoreDriver& d, const std::string& id, const std::string& tool) {
    d.insert({.id = id, .tool = tool});
    auto leased = lease_from(d, tool);
    REQUIRE(leased.size() == 1);
    REQUIRE(leased[0].intent.id.value == id);
    return leased[0];
}

std::vector<ClaimedProbe> claim_from(StoreDriver& d, int limit, const std::string& worker) {
    return wait_for(d.store().claim_probes(
        WorkerId(worker), 10s, {{.tool = "ticket", .limit = limit, .timeout = 5s}}
    ));
}

MaintenanceReport maintain(StoreDriver& d, bool judge) {
    return wait_for(d.store().maintain(judge));
}

Fate write(StoreDriver& d, Transition transition) {
    return wait_for(d.store().complete({std::move(transition)})).at(0);
}

LateFate late(StoreDriver& d, Transition transition) {
    return wait_for(d.store().record_late(std::move(transition)));
}

LeasedAttempt overslept(StoreDriver& d, const std::string& id, const std::string& tool) {
    auto attempt = insert_and_lease(d, id, tool);
    d.pass(31s);
    REQUIRE(maintain(d).lease_expired == 1);
    return attempt;
}

std::string state(StoreDriver& d, const std::string& id) {
    const auto seen = d.see(id);
    return seen.status + " " + std::to_string(seen.epoch) + " " + std::to_string(seen.attempts);
}

Transition to(const LeasedAttempt& attempt, Status status) {
    Transition t;
    t.seq = attempt.intent.seq;
    t.id = attempt.intent.id;
    t.tool = attempt.intent.tool;
    t.epoch = attempt.epoch;
    t.to = status;
    return t;
}

Transition success(const LeasedAttempt& attempt, const std::string& result) {
    auto t = to(attempt, Status::succeeded);
    t.result = Json(result);
    t.evidence = Transition::Evidence::effect;
    return t;
}

Transition failure(const LeasedAttempt& attempt) {
    auto t = to(attempt, Status::failed);
    t.error = Error{"refused", "it was refused"};
    t.evidence = Transition::Evidence::no_effect;
    t.events.push_back({EventKind::failed, Json::Object{}});
    return t;
}

Transition again(const LeasedAttempt& attempt, std::chrono::milliseconds due_in) {
    auto t = to(attempt, Status::scheduled);
    t.due_in = due_in;
    t.error = Error{"not_sent", "connection refused"};
    t.evidence = Transition::Evidence::no_effect;
    t.events.push_back({EventKind::retry, Json::Object{}});
    return t;
}

Transition doubt(const LeasedAttempt& attempt) {
    auto t = to(attempt, Status::unknown);
    t.due_in = 0ms;
    t.ambiguous = true;
    t.cause = Cause::timeout;
    t.error = Error{"timeout", "no answer"};
    t.events.push_back({EventKind::unknown, Json::Object{}});
    return t;
}

Transition verdict(const ClaimedProbe& claim, Status status) {
    Transition t;
    t.writer = Transition::Writer::probe;
    t.seq = claim.intent.seq;
    t.id = claim.intent.id;
    t.tool = claim.intent.tool;
    t.epoch = claim.epoch;
    t.to = status;
    if (status == Status::scheduled || status == Status::unknown) t.due_in = 0ms;
    if (status == Status::failed) t.error = Error{"attempts_used_up", "it is absent"};
    t.events.push_back({EventKind::probe, Json::Object{}});
    return t;
}

}  // namespace tests
