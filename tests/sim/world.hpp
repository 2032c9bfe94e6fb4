#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "outbox/engine.hpp"
#include "tests/sim/draw.hpp"
#include "tests/sim/provider.hpp"
#include "tests/sim/session.hpp"
#include "tests/sim/silence.hpp"
#include "tests/sim/sim_time.hpp"
#include "tests/support/memory_store.hpp"

namespace sim {

// What one seed came to.
struct Report {
    std::vector<std::string> faults;  // broken promises; empty when all is well
    std::uint64_t trace = 0;          // hash of every move and every effect, with its time
    std::map<std::string, int> seen;  // what happened in it, for the counts of a run
};

// One seed: daemons (the real Engine, each on an io context of its own) over one store, the other
// side, planners, and what befalls them. Single-threaded; time is sim::Time.
class World {
 public:
    explicit World(std::uint64_t seed);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    Report run();
    std::function<void(const std::string& line)> tell;  // a line per thing that happens

 private:
    struct Machine {
        int number = 0;
        int incarnation = 0;
        std::unique_ptr<boost::asio::io_context> io;
        std::unique_ptr<outbox::Toolset> tools;
        std::unique_ptr<Session> store;
        std::unique_ptr<outbox::Engine> engine;
        bool ended = false;  // a graceful stop came to its end
        bool frozen = false;
        int crash_in = -1;  // handlers until then: between any two awaits of any coroutine
        int freeze_in = -1;
        milliseconds freeze_for{0};
    };
    void start(Machine& machine);
    void crash(Machine& machine);
    void freeze(Machine& machine);
    void stop(Machine& machine);
    void run_machines();
    bool run_handler(Machine& machine);
    std::unique_ptr<outbox::Toolset> make_tools(Machine& machine, int account);
    void answered(Machine& machine, const outbox::ToolCall& call, const outbox::Outcome& outcome);

    void plan_operations();
    void plan_planner(const std::string& id);
    void plan_compensations(const std::string& id);
    void plan_person(const std::string& id);
    void plan_chaos();
    void plan_change(std::function<void()> change);
    void strike();
    void step_clock();
    void calm_down();
    void moved(const test::MemoryStore::Row& row, outbox::Status from);
    std::optional<test::MemoryStore::Fault> database_fault();
    boost::asio::awaitable<void> travel();

    // The seeds above, so that the others are the worlds they always were.
    [[nodiscard]] bool compensated() const { return seed_ > kCompensated; }
    static constexpr std::uint64_t kCompensated = 8'000;

    // world_check.cpp
    [[nodiscard]] bool quiet() const;
    void check();
    void check_original(const test::MemoryStore::Row& row);
    void check_write(const test::MemoryStore::Row& row);
    [[nodiscard]] bool misled(const test::MemoryStore::Row& row) const;
    void fault(const std::string& id, const std::string& what);
    void saw(const std::string& what) { ++report_.seen[what]; }
    void note(const std::string& line);
    void trace(std::uint64_t value);

    std::uint64_t seed_;
    Dice dice_;
    Draw draw_;
    Dice compensations_;  // apart: a world with them is otherwise drawn as one without
    Provider provider_;
    test::MemoryStore store_;
    Silence silence_;
    outbox::Failpoints failpoints_;
    std::vector<std::unique_ptr<Machine>> machines_;
    std::map<std::string, std::int32_t> epochs_;
    // Successes that a daemon read, by operation: which incarnation of which machine.
    std::map<std::string, std::set<std::pair<int, int>>> successes_;
    int account_ = 0;
    milliseconds steps_ahead_{0};
    bool calm_ = false;
    bool changed_ = true;  // since quiet() was asked last
    Report report_;
};

}  // namespace sim
