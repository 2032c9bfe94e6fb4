#include <algorithm>
#include <array>

#include "tests/sim/world.hpp"

// What must hold, during a run and once it is quiet.
namespace sim {

using namespace outbox;
using Row = test::MemoryStore::Row;

namespace {

// The diagram in outbox/README.md, and "a flag was set, a claim was taken" within a status.
constexpr std::array kAllowed = {
    std::pair{Status::pending, Status::attempting},
    std::pair{Status::pending, Status::failed},
    std::pair{Status::pending, Status::succeeded},
    std::pair{Status::pending, Status::cancelled},
    std::pair{Status::scheduled, Status::pending},
    std::pair{Status::scheduled, Status::failed},
    std::pair{Status::scheduled, Status::succeeded},
    std::pair{Status::scheduled, Status::cancelled},
    std::pair{Status::attempting, Status::pending},
    std::pair{Status::attempting, Status::succeeded},
    std::pair{Status::attempting, Status::failed},
    std::pair{Status::attempting, Status::scheduled},
    std::pair{Status::attempting, Status::unknown},
    std::pair{Status::unknown, Status::unknown},
    std::pair{Status::unknown, Status::succeeded},
    std::pair{Status::unknown, Status::scheduled},
    std::pair{Status::unknown, Status::failed},
    std::pair{Status::unknown, Status::pending},
    std::pair{Status::failed, Status::pending},
    std::pair{Status::failed, Status::succeeded},
    std::pair{Status::failed, Status::scheduled},  // a compensation, armed again, waits again
    std::pair{Status::cancelled, Status::succeeded},
    std::pair{Status::cancelled, Status::pending},  // a compensation that is asked for again
    std::pair{Status::cancelled, Status::scheduled},
    std::pair{Status::succeeded, Status::succeeded},
};

std::string text_of(Status status) {
    return std::string(to_string(status));
}

}  // namespace

void World::fault(const std::string& id, const std::string& what) {
    report_.faults.push_back(id + ": " + what);
    note("FAULT " + id + ": " + what);
}

void World::note(const std::string& line) {
    if (!tell) return;
    const auto since = Time::instance().now().time_since_epoch() - std::chrono::hours(1);
    tell(std::to_string(std::chrono::duration_cast<milliseconds>(since).count()) + " " + line);
}

void World::trace(std::uint64_t value) {
    const auto now = Time::instance().now().time_since_epoch().count();
    report_.trace = (report_.trace ^ value ^ static_cast<std::uint64_t>(now)) * 0x100000001b3U;
}

void World::moved(const Row& row, Status from) {
    const auto& id = row.intent.id.value;
    if (tell) {
        note(
            "move " + id + " " + text_of(from) + " → " + text_of(row.status) + " epoch " +
            std::to_string(row.epoch)
        );
    }
    trace(
        std::hash<std::string>{}(id) + static_cast<std::uint64_t>(row.epoch) * 64 +
        static_cast<std::uint64_t>(from) * 8 + static_cast<std::uint64_t>(row.status)
    );
    changed_ = true;
    saw(text_of(from) + " → " + text_of(row.status));
    auto& last = epochs_[id];
    if (row.epoch != last + 1) fault(id, "the epoch went from " + std::to_string(last));
    last = row.epoch;
    const std::pair move(from, row.status);
    if (std::find(kAllowed.begin(), kAllowed.end(), move) == kAllowed.end()) {
        fault(id, "moved from " + text_of(from) + " to " + text_of(row.status));
    }
    if (row.intent.compensates && row.status == Status::attempting) check_original(row);
}

// A compensation is attempted only when its original is known to have happened.
void World::check_original(const Row& row) {
    const auto& original = row.intent.compensates->value;
    saw("compensations attempted");
    if (store_.row(original).status != Status::succeeded) {
        fault(row.intent.id.value, "attempted before its original succeeded");
    }
    if (provider_.effects(original) == 0) {
        fault(row.intent.id.value, "undoes what never happened");
    }
}

// Every operation is final or waits for a person (or, a compensation, for an original that does),
// and nobody is at work.
bool World::quiet() const {
    const auto waits = [](const Row& row) {
        return row.status == Status::unknown && row.attention.has_value() && !row.due_at;
    };
    int operations = 0;
    for (const auto& [seq, row] : store_.rows()) {
        if (!row.intent.compensates) ++operations;
        const bool behind = row.waits_for && waits(store_.rows().at(*row.waits_for));
        if (!row.is_final() && !waits(row) && !behind) return false;
    }
    if (operations != draw_.operations) return false;
    return std::all_of(machines_.begin(), machines_.end(), [](const auto& machine) {
        return machine->engine && machine->engine->attempts_in_flight() == 0 &&
               machine->engine->probes_in_flight() == 0;
    });
}

void World::check() {
    for (const auto& [seq, row] : store_.rows()) {
        saw("ended " + text_of(row.status));
        if (row.attention) saw("attention " + std::string(to_string(*row.attention)));
        if (row.intent.tool != "look") check_write(row);
    }
    for (auto& machine : machines_) {
        if (machine->engine && machine->engine->failed()) fault("-", "a loop ended on a fault");
    }
}

// In the hole a wrong "absent" was believed, and the operation ended on that alone. An answer of
// ours must not be taken for one: after an attempt in doubt it proves nothing.
bool World::misled(const Row& row) const {
    if (!draw_.hole) return false;
    if (row.status == Status::cancelled || !row.error) return true;
    const auto& why = row.error->message;
    return why.starts_with("It did not happen") || why.starts_with("The operation was not carried");
}

void World::check_write(const Row& row) {
    const auto& id = row.intent.id.value;
    const int effects = provider_.effects(id);
    const auto error = row.error ? row.error->code : "";
    if (effects > 1) fault(id, std::to_string(effects) + " effects");
    if (row.status == Status::succeeded) {
        if (effects == 0) fault(id, "succeeded without an effect");
        const auto* result = row.result.find("id");
        const auto* text = result != nullptr ? result->as_string() : nullptr;
        if (text == nullptr || !provider_.has_result(id, *text)) fault(id, "a wrong result");
    }
    const bool says_none = row.status == Status::failed || row.status == Status::cancelled;
    if (says_none && effects > 0 && !misled(row)) {
        fault(id, text_of(row.status) + " (" + error + ") with an effect");
    }
    if (row.attempts > draw_.write.retry.max_attempts) {
        fault(id, std::to_string(row.attempts) + " attempts");
    }
    // What a living daemon was told counts, however late it was.
    for (const auto& [number, incarnation] : successes_[id]) {
        const auto& machine = *machines_[static_cast<std::size_t>(number)];
        if (machine.incarnation == incarnation && row.status != Status::succeeded) {
            fault(id, "an answer was lost, it is " + text_of(row.status));
        }
    }
}

}  // namespace sim
