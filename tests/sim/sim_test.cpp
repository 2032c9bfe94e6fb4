#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "tests/sim/world.hpp"
#include "tests/support/catch.hpp"

namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::stoull(text);
}

sim::Report run(std::uint64_t seed, bool telling = false) {
    sim::World world(seed);
    if (telling) world.tell = [](const std::string& line) { std::cerr << line << '\n'; };
    return world.run();
}

std::string text_of(const sim::Report& report) {
    std::string text;
    for (const auto& fault : report.faults) text += fault + "\n";
    return text;
}

}  // namespace

// OUTBOXD_SIM_SEED=n replays one seed and tells what happens; OUTBOXD_SIM_SEEDS=n runs so many,
// from OUTBOXD_SIM_FIRST on.
TEST_CASE("a hostile world: at most one effect, nothing lost, no lie") {
    if (const auto seed = number("OUTBOXD_SIM_SEED", 0); seed != 0) {
        const auto report = run(seed, true);
        INFO("seed " << seed << "\n" << text_of(report));
        CHECK(report.faults.empty());
        return;
    }
    const auto first = number("OUTBOXD_SIM_FIRST", 1);
    // Beyond 8,000 there are compensations.
    const auto count = number("OUTBOXD_SIM_SEEDS", 12'000);
    std::map<std::string, int> seen;
    int broken = 0;
    const auto begun = std::chrono::steady_clock::now();
    for (auto seed = first; seed < first + count && broken < 20; ++seed) {
        const auto report = run(seed);
        for (const auto& [what, times] : report.seen) seen[what] += times;
        if (report.faults.empty()) continue;
        ++broken;
        INFO("seed " << seed << " (replay: OUTBOXD_SIM_SEED=" << seed << ")\n" << text_of(report));
        CHECK(report.faults.empty());
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    if (std::getenv("OUTBOXD_SIM_COUNTS") != nullptr) {
        std::cerr << count << " seeds in " << took.count() << " s\n";
        for (const auto& [what, times] : seen) std::cerr << times << "\t" << what << '\n';
    }
    CHECK(broken == 0);
}

TEST_CASE("a seed replays exactly") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        INFO("seed " << seed);
        const auto once = run(seed);
        const auto again = run(seed);
        CHECK(once.trace == again.trace);
        CHECK(once.seen == again.seen);
        CHECK(once.trace != run(seed + 1'000).trace);
    }
}
