#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "tests/unit/core/engine_fixture.hpp"

using namespace outbox;
using namespace test;
using Script = FakeTool::Script;

namespace {

constexpr int kOperations = 40;
constexpr int kMaxAttempts = 3;

// The arrows of the diagram (outbox/README.md) that a daemon may walk; a test in states_test.cpp
// keeps the diagram itself equal to the code.
const std::set<std::pair<Status, Status>> kArrows = {
    {Status::pending, Status::attempting},
    {Status::pending, Status::failed},
    {Status::scheduled, Status::pending},
    {Status::scheduled, Status::failed},
    {Status::attempting, Status::pending},
    {Status::attempting, Status::succeeded},
    {Status::attempting, Status::failed},
    {Status::attempting, Status::scheduled},
    {Status::attempting, Status::unknown},
    {Status::unknown, Status::succeeded},
    {Status::unknown, Status::scheduled},
    {Status::unknown, Status::failed},
};

// The outside system: it alone knows what happened. An effect per provider key, counted.
class Outside {
 public:
    explicit Outside(std::uint64_t seed) : random_(seed) {}

    Outcome execute(const ToolCall& call) {
        ++attempts[call.intent.id.value];
        const auto dice = random_() % 100;
        if (dice < 20) return not_sent();
        if (dice < 30)
            return RetryLater{.error = {"status_503", "busy"}, .after = {}, .counts = true};
        if (dice < 35) return Rejected{.error = {"refused", "no"}, .proves_absence = false};
        if (dice < 45) return Unknown{.cause = Cause::reset, .error = {"reset", "lost request"}};
        ++effects[call.provider_key];
        if (dice < 60) return Unknown{.cause = Cause::timeout, .error = {"timeout", "lost answer"}};
        if (dice < 65) throw std::runtime_error("an adapter's bug");
        if (dice < 70) return Accepted{};
        return Succeeded{};
    }
    Verdict probe(const ToolCall& call) {
        if (random_() % 4 == 0) return Inconclusive{.error = {"status_500", "broken"}};
        if (effects[call.provider_key] > 0) return Found{};
        return Absent{};
    }
    std::uint64_t dice() { return random_(); }

    std::map<std::string, int> attempts;
    std::map<std::string, int> effects;  // by provider key

 private:
    static RetryLater not_sent() {
        RetryLater later;
        later.error = {"not_sent_connect", "refused"};
        later.counts = false;
        return later;
    }
    std::mt19937_64 random_;
};

ToolPolicy policy() {
    auto tool = quick_policy("t");
    tool.timeout = 15ms;
    tool.retry.max_attempts = kMaxAttempts;
    return tool;
}

bool all_final(const MemoryStore& store) {
    for (const auto& [seq, row] : store.rows()) {
        if (row.status != Status::succeeded && row.status != Status::failed) return false;
    }
    return true;
}

// Daemons one after the other, each killed at a random moment, the last one to the end.
void run_daemons(MemoryStore& store, Outside& outside, Script& script, int crashes) {
    for (int life = 0; life <= crashes; ++life) {
        Daemon daemon(store, quick_settings("w" + std::to_string(life)));
        daemon.add_tool(policy(), script);
        store.clear_faults();
        if (outside.dice() % 2 == 0) {
            store.fail(MemoryStore::Method::lease, {StoreError::Kind::in_doubt, true});
            store.fail(MemoryStore::Method::complete, {StoreError::Kind::in_doubt, true});
            store.fail(MemoryStore::Method::complete, {StoreError::Kind::unavailable, false});
        }
        daemon.start();
        if (life < crashes) {
            daemon.run_for(std::chrono::milliseconds(outside.dice() % 40));
        } else {
            daemon.run_until([&] { return all_final(store); }, 20s);
            daemon.stop();
        }
    }
}

}  // namespace

TEST_CASE("whatever happens: one effect at most, no lie, no attempt too many, no other arrow") {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        INFO("seed " << seed);
        MemoryStore store;
        Outside outside(seed);
        Script script;
        script.execute_takes = 1ms;
        script.execute = [&](const ToolCall& call) { return outside.execute(call); };
        script.probe = [&](const ToolCall& call) { return outside.probe(call); };
        for (int i = 0; i < kOperations; ++i) store.insert("t", "op" + std::to_string(i));
        run_daemons(store, outside, script, 4);

        for (const auto& [seq, row] : store.rows()) {
            const auto id = row.intent.id.value;
            std::string key;
            for (const auto& call : script.calls) {
                if (call.intent.id.value == id) key = call.provider_key;
            }
            INFO(id << ": " << row.event_kinds());
            CHECK(outside.effects[key] == (row.status == Status::succeeded ? 1 : 0));
            CHECK(row.attempts <= kMaxAttempts);
            CHECK(row.attempts >= (row.status == Status::succeeded ? 1 : 0));
            CHECK_FALSE(row.attention.has_value());
        }
        for (const auto& move : store.moves) {
            INFO(to_string(move.first) << " → " << to_string(move.second));
            CHECK(kArrows.contains(move));
        }
    }
}

TEST_CASE("two daemons on one store: each effect once") {
    MemoryStore store;
    Outside outside(77);
    Script script;
    script.execute_takes = 1ms;
    script.execute = [&](const ToolCall& call) {
        ++outside.effects[call.provider_key];
        return Succeeded{};
    };
    for (int i = 0; i < 200; ++i) store.insert("t", "op" + std::to_string(i));
    Daemon first(store, quick_settings("w1"));
    Daemon second(store, quick_settings("w2"));
    for (auto* daemon : {&first, &second}) {
        daemon->add_tool(quick_policy("t"), script);
        daemon->start();
    }
    for (int i = 0; i < 2'000 && !all_final(store); ++i) {
        first.run_for(1ms);
        second.run_for(1ms);
    }
    CHECK(all_final(store));
    CHECK(script.calls.size() == 200);
    for (const auto& [key, effects] : outside.effects) CHECK(effects == 1);
}
