// How the leaser goes about the limits that it shares: with the other outboxes of the process, and
// with resends, which are attempts that nobody leases.
#include <memory>

#include "outbox/leaser.hpp"

namespace outbox {

// What is asked for is set aside until the answer is there: another outbox of this process may ask
// meanwhile.
void Leaser::reserve(const LeaseRequest& request) {
    const auto now = BootClock::now();
    int sum = 0;
    leave_line();
    for (const auto& asked : request.lanes) {
        by_tool_.find(asked.tool)->second->slots.reserve(asked.limit, now);
        sum += asked.limit;
    }
    calls_.reserve(sum, now);
}

void Leaser::settle(const LeaseRequest& request) {
    const auto now = BootClock::now();
    for (const auto& asked : request.lanes) by_tool_.find(asked.tool)->second->slots.settle(now);
    calls_.settle(now);
}

// While it asks it waits for nobody.
void Leaser::leave_line() {
    for (auto& lane : lanes_) lane->slots.stand_in_line(false);
    calls_.stand_in_line(false);
}

// Says to the other outboxes of this process where it would take more than it may: there it gets
// its turn. A lane that could not ask at all may have rows; one that cannot use a slot just now
// keeps none from the others.
void Leaser::stand_in_line() {
    const auto now = BootClock::now();
    const bool able = slots_.free() > 0 && !stopping_;
    const bool may_call = calls_.free(now) > 0;
    bool could = false;
    for (auto& lane : lanes_) {
        const auto* gate = lane->entry->gate.get();
        const bool wants =
            able && (lane->full || !lane->asked) && (gate == nullptr || gate->allowance(now) > 0);
        lane->slots.stand_in_line(wants && may_call);
        if (wants && lane->slots.available(now) > 0) could = true;
    }
    calls_.stand_in_line(could && !may_call);
    // Where it yielded to somebody, he should know.
    for (auto& lane : lanes_) {
        if (!lane->asked) lane->slots.nudge(now);
    }
    if (!may_call) calls_.nudge(now);
}

std::shared_ptr<void> Leaser::take(const std::string& tool) {
    const auto found = by_tool_.find(tool);
    if (found == by_tool_.end()) return nullptr;
    auto& lane = *found->second;
    struct Taken {
        Slots::Slot worker;
        SharedLimit::Slot call;
        SharedLimit::Slot tool;
    };
    auto taken = std::make_shared<Taken>(slots_.take(), calls_.take(), lane.slots.take());
    observer_.slots(tool, lane.slots.used(), lane.slots.limit());
    return taken;
}

void Leaser::spend(const std::string& tool) {
    const auto found = by_tool_.find(tool);
    if (found != by_tool_.end()) found->second->slots.spend_token();
}

}  // namespace outbox
