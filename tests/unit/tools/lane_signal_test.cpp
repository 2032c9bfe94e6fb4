// What one answer says about the other side as a whole: row by row.
#include "tools/lane_signal.hpp"

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/lane_gates.hpp"

using namespace test;
using tools::LaneSignal;
using Health = LaneSignal::Health;

namespace {

tools::HttpResult response(int status, std::string retry_after = {}) {
    tools::HttpResponse result;
    result.status = status;
    if (!retry_after.empty()) result.headers.emplace_back("retry-after", std::move(retry_after));
    return result;
}

tools::HttpResult failure(bool sent, std::string code) {
    return tools::HttpFailure{sent, outbox::Cause::other, {std::move(code), ""}};
}

// What the gate is told after this answer, by the rules of this tool.
LaneSignal judged(const std::string& outcomes, const tools::HttpResult& result) {
    const auto config = configuration(
        "  tool:\n    execute: { type: http, method: POST, url: 'https://h.example/'" + outcomes +
        " }\n    reconcile: { type: manual, reason: a test }\n"
    );
    config::Diagnostics diagnostics;
    auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
    INFO(all_of(diagnostics));
    REQUIRE(compiled.has_value());
    const auto call = call_with("{}");
    const auto& execute = std::get<tools::HttpExecute>(compiled->execute);
    return tools::with_outcome(tools::lane_signal(result), tools::judge(execute, result, {call}));
}

}  // namespace

TEST_CASE("who is up, who is down, and what says nothing about it") {
    for (const int status : {200, 201, 302, 400, 401, 403, 404, 409, 422, 429}) {
        CAPTURE(status);
        CHECK(tools::lane_signal(response(status)).health == Health::up);
    }
    for (const int status : {500, 502, 503, 504, 599}) {
        CAPTURE(status);
        CHECK(tools::lane_signal(response(status)).health == Health::down);
    }
    for (const auto* code :
         {"not_sent_dns", "not_sent_connect", "not_sent_tls", "not_sent_proxy"}) {
        CAPTURE(code);
        CHECK(tools::lane_signal(failure(false, code)).health == Health::unreached);
    }
    for (const auto* code : {"timeout", "reset"}) {
        CHECK(tools::lane_signal(failure(true, code)).health == Health::down);
    }
    for (const auto* code :
         {"not_sent_deadline",
          "not_sent_cancelled",
          "not_sent_invalid",
          "not_sent_private_host",
          "not_sent_credential"}) {
        CAPTURE(code);
        CHECK(tools::lane_signal(failure(false, code)).health == Health::unknown);
    }
    CHECK(tools::lane_signal(failure(true, "cancelled")).health == Health::unknown);
    CHECK(tools::lane_signal(failure(true, "unreadable")).health == Health::unknown);
}

TEST_CASE("Retry-After of a 429 and of a 503 is meant for everybody") {
    CHECK(judged("", response(429, "30")).pause == 30s);
    CHECK(judged("", response(503, "7")).pause == 7s);
    // It says when it will be back: no reason for the breaker to guess.
    CHECK(judged("", response(503, "7")).health == Health::up);
    CHECK(judged("", response(503)).health == Health::down);
    CHECK_FALSE(judged("", response(503)).pause);
    // A 429 that does not say how long.
    CHECK(judged("", response(429)).pause == 1s);
    CHECK_FALSE(judged("", response(500, "30")).pause);
    CHECK_FALSE(judged("", response(200, "30")).pause);
}

TEST_CASE("what the rules know about the wait counts, unless it is about one operation") {
    auto named = response(403);
    std::get<tools::HttpResponse>(named).headers.emplace_back("X-Reset", "12");
    CHECK(
        judged(
            ", outcomes: [ { when: { status: 403 }, then: retry, retry_after: header:X-Reset } ]",
            named
        )
            .pause == 12s
    );
    auto slack = response(200);
    std::get<tools::HttpResponse>(slack).body = R"({"ok": false, "wait": 9})";
    CHECK(
        judged(
            ", outcomes: [ { when: { body: { /ok: false } }, then: retry, retry_after: /wait } ]",
            slack
        )
            .pause == 9s
    );
    // The file's own duration is about this operation, unless the status says it is not.
    CHECK_FALSE(judged(
                    ", outcomes: [ { when: { status: 423 }, then: retry, retry_after: 5s } ]",
                    response(423)
    )
                    .pause);
    CHECK(
        judged(
            ", outcomes: [ { when: { status: 429 }, then: retry, retry_after: 5s } ]", response(429)
        )
            .pause == 5s
    );
    // In progress: this one, not the others.
    CHECK_FALSE(judged(
                    ", outcomes: [ { when: { status: 409 }, then: retry, retry_after: header } ]",
                    response(409, "30")
    )
                    .pause);
}

TEST_CASE("the action tells the gate") {
    const auto config = configuration(
        "  tool:\n    execute: { type: http, method: POST, url: 'https://h.example/' }\n"
        "    reconcile: { type: manual, reason: a test }\n"
    );
    config::Diagnostics diagnostics;
    auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
    auto sender = std::make_shared<ScriptedSender>();
    auto gate = std::make_shared<outbox::LaneGate>();
    tools::HttpAction action(
        std::move(std::get<tools::HttpExecute>(compiled->execute)), sender, gate
    );
    boost::asio::io_context io;
    const auto perform = [&] {
        return run_coroutine(io, action.perform(call_with("{}"), outbox::Deadline::after(5s)), 10s);
    };
    for (int i = 0; i < 5; ++i) {
        CHECK_FALSE(gate->breaker_open());
        sender->fail(false, outbox::Cause::other, "not_sent_connect");
        // The breaker changes nothing about how an attempt ends.
        CHECK_FALSE(get<outbox::RetryLater>(perform()).counts);
    }
    CHECK(gate->breaker_open());
    sender->answer(200);
    (void)perform();
    CHECK_FALSE(gate->breaker_open());
    sender->answer(429, "", "Retry-After", "30");
    (void)perform();
    CHECK(gate->wait(outbox::BootClock::now()) > 25s);
}

namespace {

// A tool whose attempts and probes each have a gate, as build_toolset connects them.
struct TwoLanes {
    std::shared_ptr<outbox::LaneGate> attempts = std::make_shared<outbox::LaneGate>();
    std::shared_ptr<outbox::LaneGate> probes = std::make_shared<outbox::LaneGate>();
    tools::LaneReporter of_attempts{attempts, probes};
    tools::LaneReporter of_probes{probes, attempts};

    static LaneSignal signal(Health health) {
        return {.health = health, .status = 0, .pause = std::nullopt};
    }
};

}  // namespace

TEST_CASE("two lanes of one host: what concerns the host closes both, the rest closes one") {
    TwoLanes lanes;
    // One path answers 500: the other lane goes on, and its successes do not open this one.
    for (int i = 0; i < 5; ++i) {
        lanes.of_attempts.tell(TwoLanes::signal(Health::down));
        lanes.of_probes.tell(TwoLanes::signal(Health::up));
    }
    CHECK(lanes.attempts->breaker_open());
    CHECK_FALSE(lanes.probes->breaker_open());
    // No connection to be had: neither asks.
    TwoLanes down;
    for (int i = 0; i < 5; ++i) down.of_attempts.tell(TwoLanes::signal(Health::unreached));
    CHECK(down.attempts->breaker_open());
    CHECK(down.probes->breaker_open());
    // Whoever is told to wait, both do.
    TwoLanes busy;
    busy.of_probes.tell({.health = Health::up, .status = 429, .pause = 30s});
    const auto now = outbox::BootClock::now();
    CHECK(busy.attempts->wait(now) > 25s);
    CHECK(busy.probes->wait(now) > 25s);
    // Another host is another matter.
    TwoLanes apart;
    tools::LaneReporter alone{apart.probes};
    for (int i = 0; i < 5; ++i) alone.tell(TwoLanes::signal(Health::unreached));
    CHECK(apart.probes->breaker_open());
    CHECK_FALSE(apart.attempts->breaker_open());
}

TEST_CASE("a look-up tells its gate: failures, 429, Retry-After; a page counts as well") {
    const auto config = configuration(
        "  tool:\n    execute: { type: http, method: POST, url: 'https://h.example/' }\n"
        "    reconcile: { type: http, url: 'https://h.example/', verdicts: [ { when: { status: 404 "
        "}, then: absent } ] }\n"
    );
    config::Diagnostics diagnostics;
    auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
    auto sender = std::make_shared<ScriptedSender>();
    auto gate = std::make_shared<outbox::LaneGate>();
    tools::HttpProbe probe(std::move(std::get<tools::HttpLookup>(*compiled->lookup)), sender, gate);
    boost::asio::io_context io;
    const auto ask = [&] {
        return run_coroutine(io, probe.ask(call_with("{}"), outbox::Deadline::after(5s)), 10s);
    };
    for (int i = 0; i < 5; ++i) {
        CHECK_FALSE(gate->breaker_open());
        sender->answer(500);
        (void)get<outbox::Inconclusive>(ask());
    }
    CHECK(gate->breaker_open());
    sender->answer(404);
    (void)get<outbox::Absent>(ask());
    CHECK_FALSE(gate->breaker_open());
    const auto wait = [&] { return gate->wait(outbox::BootClock::now()); };
    CHECK(wait() == 0s);
    sender->answer(429);
    (void)get<outbox::Inconclusive>(ask());
    CHECK(wait() > 0s);
    CHECK(wait() <= 1s);
    sender->answer(503, "", "Retry-After", "30");
    (void)get<outbox::Inconclusive>(ask());
    CHECK(wait() > 25s);
}

TEST_CASE("gates outlive a reload, as long as the target stays what it is") {
    tools::LaneGates gates(nullptr);
    using Lane = tools::LaneGates::Lane;
    auto gate = gates.of("t", Lane::attempts, "POST https://h.example/");
    gate->pause(1h, outbox::BootClock::now());
    CHECK(gates.of("t", Lane::attempts, "POST https://h.example/") == gate);
    CHECK(gates.of("t", Lane::probes, "POST https://h.example/") != gate);
    CHECK(gates.of("u", Lane::attempts, "POST https://h.example/") != gate);
    CHECK(gates.of("t", Lane::attempts, "POST https://other.example/") != gate);
    gate.reset();  // no toolset holds it any more
    const auto fresh = gates.of("t", Lane::attempts, "POST https://h.example/");
    CHECK(fresh->wait(outbox::BootClock::now()) == 0s);
}
