#include "tests/sim/world.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/sim/sim_tool.hpp"

namespace sim {

using namespace outbox;
using namespace std::chrono_literals;
using Fault = test::MemoryStore::Fault;

namespace {

constexpr auto kNeverQuiet = 1'200s;  // virtual, after the chaos

}  // namespace

World::World(std::uint64_t seed)
    : seed_(seed), dice_(seed), draw_(dice_), compensations_(seed + 1), provider_(draw_, dice_) {
    Time::instance().reset();
    store_.on_move = [this](const auto& row, Status from) { moved(row, from); };
    store_.on_call = [this](auto) { return database_fault(); };
    store_.travel = [this] { return travel(); };
    store_.run_delayed = [this](auto statement) {
        Time::instance().plan(dice_.up_to(8s), std::move(statement));
    };
    provider_.on_effect = [this](const std::string& id, int effects) {
        note("effect " + std::to_string(effects) + " of " + id);
        trace(std::hash<std::string>{}(id) + static_cast<std::uint64_t>(effects));
        saw("effects");
    };
    for (int i = 0; i < draw_.machines; ++i) {
        machines_.push_back(std::make_unique<Machine>());
        machines_.back()->number = i;
    }
}

World::~World() {
    for (auto& machine : machines_) {
        machine->engine.reset();
        machine->io.reset();
    }
    Time::instance().reset();
}

Report World::run() {
    for (auto& machine : machines_) start(*machine);
    plan_operations();
    plan_chaos();
    const auto until = Time::instance().now() + draw_.chaos + kNeverQuiet;
    for (;;) {
        run_machines();
        if (calm_ && changed_ && quiet()) break;
        if (Time::instance().now() > until || !Time::instance().step()) {
            fault("-", "never quiet");
            break;
        }
    }
    check();
    return std::move(report_);
}

// Machines ------------------------------------------------------------------------------------

std::unique_ptr<Toolset> World::make_tools(Machine& machine, int account) {
    auto tools = std::make_unique<Toolset>();
    auto add = [&](ToolPolicy policy) {
        policy.request_hash += account;
        auto tool = std::make_unique<SimTool>(provider_, draw_, dice_, account);
        tool->on_answer = [this, &machine](const ToolCall& call, const Outcome& outcome) {
            answered(machine, call, outcome);
        };
        tools->add({std::move(policy), std::move(tool)});
    };
    add(draw_.write);
    if (compensated()) {
        auto policy = draw_.write;
        policy.name = "ticket:undo";
        policy.compensation = true;
        add(std::move(policy));
    }
    if (draw_.manual) {
        auto policy = draw_.write;
        policy.name = "manual";
        policy.reconcile.manual = true;
        add(std::move(policy));
    }
    if (draw_.read) {
        auto policy = draw_.write;
        policy.name = "look";
        policy.effect = Effect::read;
        add(std::move(policy));
    }
    return tools;
}

void World::start(Machine& machine) {
    if (machine.engine) return;
    ++machine.incarnation;
    machine.ended = machine.frozen = false;
    machine.crash_in = machine.freeze_in = -1;
    const auto name =
        "w" + std::to_string(machine.number) + "-" + std::to_string(machine.incarnation);
    note("start " + name);
    EngineSettings settings;
    settings.worker = {.id = WorkerId(name), .name = name, .version = "0", .tools = {}};
    settings.concurrency = 1 + dice_.below(4);
    settings.probe_concurrency = 8;
    settings.margin = draw_.margin;
    settings.poll_busy = 50ms;
    settings.poll_idle = 1'000ms;
    settings.maintain_poll = 1'000ms;
    settings.drain_timeout = dice_.up_to(6s);
    settings.cut_grace = 500ms;
    settings.flush_timeout = 3s;
    settings.seed = dice_.next();
    machine.io = std::make_unique<boost::asio::io_context>(1);
    machine.tools = make_tools(machine, account_);
    machine.store = std::make_unique<Session>(store_);
    machine.engine = std::make_unique<Engine>(
        machine.io->get_executor(),
        *machine.store,
        *machine.tools,
        silence_,
        silence_,
        failpoints_,
        std::move(settings)
    );
    boost::asio::co_spawn(*machine.io, machine.engine->run(), [&machine](std::exception_ptr error) {
        if (error) std::rethrow_exception(error);
        machine.ended = true;
    });
}

// As SIGKILL: nothing runs any more, not even a destructor that would write.
void World::crash(Machine& machine) {
    if (!machine.engine) return;
    if (machine.engine->failed()) fault("-", "a loop ended on a fault");
    note("crash w" + std::to_string(machine.number) + "-" + std::to_string(machine.incarnation));
    machine.engine.reset();
    machine.io.reset();
    machine.tools.reset();
    saw("crashes");
    Time::instance().plan(dice_.up_to(calm_ ? 100ms : 10s), [this, &machine] { start(machine); });
}

void World::freeze(Machine& machine) {
    if (!machine.engine || machine.frozen) return;
    machine.frozen = true;
    note("freeze w" + std::to_string(machine.number));
    saw("freezes");
    const auto incarnation = machine.incarnation;
    Time::instance().plan(machine.freeze_for, [this, &machine, incarnation] {
        if (machine.incarnation != incarnation) return;
        note("thaw w" + std::to_string(machine.number));
        machine.frozen = false;
    });
}

void World::stop(Machine& machine) {
    if (!machine.engine) return;
    note("stop w" + std::to_string(machine.number));
    saw("stops");
    machine.engine->stop();
    const auto incarnation = machine.incarnation;
    // A supervisor loses its patience.
    Time::instance().plan(dice_.between(5s, 30s), [this, &machine, incarnation] {
        if (machine.incarnation == incarnation) crash(machine);
    });
}

bool World::run_handler(Machine& machine) {
    if (!machine.engine || machine.frozen) return false;
    if (machine.io->poll_one() == 0) return false;
    if (machine.crash_in >= 0 && machine.crash_in-- == 0) {
        crash(machine);
    } else if (machine.freeze_in >= 0 && machine.freeze_in-- == 0) {
        freeze(machine);
    } else if (machine.ended) {
        if (machine.engine->idle()) crash(machine);
    }
    return true;
}

void World::run_machines() {
    const auto count = machines_.size();
    for (bool ran = true; ran;) {
        ran = false;
        const auto first =
            count > 1 ? static_cast<std::size_t>(dice_.below(static_cast<int>(count))) : 0;
        for (std::size_t i = 0; i < count; ++i) {
            ran = run_handler(*machines_[(first + i) % count]) || ran;
        }
    }
}

void World::answered(Machine& machine, const ToolCall& call, const Outcome& outcome) {
    saw("answer " + std::string(outcome_name(outcome)));
    note("answer " + std::string(outcome_name(outcome)) + " of " + call.intent.id.value);
    if (call.intent.compensates) {
        const auto* result = call.intent.original_result.find("id");
        const auto& original = store_.row(call.intent.compensates->value);
        if (result == nullptr || to_text(call.intent.original_result) != to_text(original.result)) {
            fault(call.intent.id.value, "it was called without its original's result");
        }
    }
    if (!std::holds_alternative<Succeeded>(outcome)) return;
    successes_[call.intent.id.value].emplace(machine.number, machine.incarnation);
}

// What befalls them ---------------------------------------------------------------------------

void World::plan_operations() {
    for (int i = 0; i < draw_.operations; ++i) {
        const auto id = "op" + std::to_string(i);
        const auto kind = dice_.below(4);
        const auto tool = draw_.manual && kind == 0 ? "manual"
                          : draw_.read && kind == 1 ? "look"
                                                    : "ticket";
        const auto run_in = dice_.chance(0.1) ? std::optional(dice_.up_to(10s)) : std::nullopt;
        const auto expires_in =
            dice_.chance(draw_.hole ? 0.5 : 0.1) ? std::optional(dice_.up_to(20s)) : std::nullopt;
        Time::instance().plan(dice_.up_to(draw_.chaos / 2), [=, this] {
            store_.insert(tool, id, {}, 0, run_in, expires_in);
            epochs_[id] = 0;
            changed_ = true;
            for (auto& machine : machines_) {
                if (machine->engine && dice_.chance(0.5)) machine->engine->wake();
            }
        });
        plan_planner(id);
        if (compensated() && std::string_view(tool) == "ticket") plan_compensations(id);
        if (dice_.chance(0.3)) plan_person(id);
    }
}

// The planner comes again: it takes back, or asks for a failed one once more.
void World::plan_planner(const std::string& id) {
    for (int again = dice_.below(3); again > 0; --again) {
        const bool cancels = dice_.chance(0.2);
        Time::instance().plan(draw_.chaos / 2 + dice_.up_to(draw_.chaos / 2), [=, this] {
            if (cancels ? store_.cancel(id) : store_.retry(id)) {
                saw(cancels ? "cancelled" : "retried");
                note((cancels ? "cancel " : "retry ") + id);
            }
        });
    }
}

// The planner undoes it, at any moment and more than once; and what became of that, it may take
// back or have tried again.
void World::plan_compensations(const std::string& id) {
    auto& dice = compensations_;
    for (int calls = dice.below(4); calls > 0; --calls) {
        Time::instance().plan(dice.up_to(draw_.chaos), [=, this] {
            if (!epochs_.contains(id)) return;
            const auto answer = store_.compensate(id);
            epochs_.try_emplace(answer, store_.row(answer).epoch);
            changed_ = true;
            saw("compensate: " + std::string(to_string(store_.row(answer).status)));
            note("compensate " + id + ": " + answer);
        });
    }
    const auto undo = id + ":compensate:undo";
    const bool cancels = dice.chance(0.5);
    if (dice.chance(0.5)) return;
    Time::instance().plan(draw_.chaos / 2 + dice.up_to(draw_.chaos / 2), [=, this] {
        if (!epochs_.contains(undo)) return;
        if (cancels ? store_.cancel(undo) : store_.retry(undo)) note("steer " + undo);
    });
}

// A person is impatient: outboxd probe ID, again and again.
void World::plan_person(const std::string& id) {
    auto at = draw_.chaos / 4;
    const auto patience = dice_.between(200ms, 4s);
    for (int asks = 1 + dice_.below(30); asks > 0; --asks) {
        at += dice_.up_to(patience);
        Time::instance().plan(at, [=, this] {
            const auto found = epochs_.find(id);
            if (found == epochs_.end() || store_.row(id).status != Status::unknown) return;
            store_.ask(id);
            saw("asked");
            note("ask " + id);
        });
    }
}

void World::plan_chaos() {
    for (int blows = dice_.below(10); blows > 0; --blows) {
        Time::instance().plan(dice_.up_to(draw_.chaos), [this] { strike(); });
    }
    if (draw_.reconfigured && draw_.rolling) {
        // The old file beside the new one: whoever crashes meanwhile comes back with the newest.
        for (int changes = 1 + dice_.below(3); changes > 0; --changes) {
            plan_change([this] {
                account_ = 1 - account_;
                crash(*machines_[static_cast<std::size_t>(dice_.below(draw_.machines))]);
            });
        }
    } else if (draw_.reconfigured) {
        // A new file for all of them at once.
        plan_change([this] {
            account_ = 1;
            for (auto& machine : machines_) crash(*machine);
        });
    }
    if (draw_.leap) {
        for (int steps = 1 + dice_.below(3); steps > 0; --steps) {
            Time::instance().plan(3s + dice_.up_to(draw_.chaos - 3s), [this] { step_clock(); });
        }
    }
    Time::instance().plan(draw_.chaos, [this] { calm_down(); });
}

void World::plan_change(std::function<void()> change) {
    const auto at = draw_.chaos / 4 + dice_.up_to(draw_.chaos / 2);
    Time::instance().plan(at, [this, change = std::move(change)] {
        note("reconfigured");
        saw("reconfigured");
        change();
    });
}

void World::strike() {
    auto& machine =
        *machines_[static_cast<std::size_t>(dice_.below(static_cast<int>(machines_.size())))];
    // Who starts after a leap cannot know of it.
    const int kind = dice_.below(6);
    switch (draw_.leap && kind != 5 ? 2 : kind) {
        case 0:
        case 1:
            machine.crash_in = dice_.below(60);
            break;
        case 2:
        case 3:
            machine.freeze_in = dice_.below(60);
            machine.freeze_for =
                dice_.chance(0.5) ? dice_.up_to(30s) : dice_.up_to(2 * draw_.write.timeout);
            break;
        case 4:
            stop(machine);
            break;
        case 5:
            store_.set_down(true);
            saw("outages");
            Time::instance().plan(dice_.up_to(6s), [this] { store_.set_down(false); });
            break;
    }
    if (draw_.steps && dice_.chance(0.5)) {
        const auto on = std::min(dice_.up_to(600ms), 900ms - steps_ahead_);
        steps_ahead_ += on;
        store_.advance(on);
        saw("clock steps");
        note("clock step " + std::to_string(on.count()) + " ms");
    }
}

void World::step_clock() {
    const auto by = dice_.between(2s, 40s) * (dice_.chance(0.6) ? 1 : -1);
    store_.advance(by);
    saw("clock leaps");
    note("clock leap " + std::to_string(by.count()) + " ms");
}

void World::calm_down() {
    note("calm");
    calm_ = true;
    changed_ = true;
    provider_.calm();
    store_.set_down(false);
    for (auto& machine : machines_) {
        machine->frozen = false;
        machine->crash_in = machine->freeze_in = -1;
        start(*machine);
    }
}

std::optional<Fault> World::database_fault() {
    if (calm_ || !dice_.chance(draw_.statement_fails)) return std::nullopt;
    saw("database faults");
    Fault fault;
    switch (dice_.below(5)) {
        case 0:
            fault.kind = StoreError::Kind::unavailable;
            break;
        case 1:
            fault.kind = StoreError::Kind::conflict;
            break;
        case 2:
            fault.kind = StoreError::Kind::in_doubt;
            break;
        case 3:
            fault = {.kind = StoreError::Kind::in_doubt, .written = true, .delayed = false};
            break;
        case 4:
            fault = {.kind = StoreError::Kind::in_doubt, .written = false, .delayed = true};
            break;
    }
    return fault;
}

boost::asio::awaitable<void> World::travel() {
    const auto executor = co_await boost::asio::this_coro::executor;
    if (calm_ || dice_.chance(0.7)) {
        co_await boost::asio::post(executor, boost::asio::use_awaitable);
    } else {
        Bell bell(executor);
        const auto takes =
            dice_.chance(draw_.slow_way) ? dice_.up_to(2 * draw_.write.timeout) : dice_.up_to(20ms);
        co_await bell.wait(takes);
    }
}

}  // namespace sim
