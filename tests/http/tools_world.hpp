#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/recorders.hpp"
#include "tests/support/run_coroutine.hpp"
#include "tests/support/stub_http_server.hpp"
#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/toolset.hpp"

namespace tests {

using namespace std::chrono_literals;

// Counts, and keeps what the tools report.
class ToolObserver : public test::CountingObserver {
 public:
    std::map<std::string, int> credential_errors;
    std::map<std::string, int> open_breakers;
    std::map<std::string, int> openings;
    std::map<std::string, std::vector<std::chrono::nanoseconds>> pickups;
    std::map<std::string, int> started;

    void attempt_started(std::string_view tool, std::chrono::nanoseconds latency) override {
        pickups[std::string(tool)].push_back(latency);
    }
    void attempt_ended(
        std::string_view tool, const outbox::Outcome& outcome, std::chrono::nanoseconds took
    ) override {
        ++started[std::string(tool)];
        CountingObserver::attempt_ended(tool, outcome, took);
    }
    void credential_error(std::string_view name) override {
        ++credential_errors[std::string(name)];
    }
    void breaker_opened(std::string_view tool) override {
        ++open_breakers[std::string(tool)];
        ++openings[std::string(tool)];
    }
    void breaker_closed(std::string_view tool) override { --open_breakers[std::string(tool)]; }
};

// The tools of a configuration over real sockets; the servers of the test share its context.
struct ToolWorld {
    boost::asio::io_context io{1};
    outbox::Failpoints failpoints;
    test::RecordingLog log;
    ToolObserver observer;
    std::unique_ptr<outbox::Toolset> tools;

    // The YAML of the tools, indented by two, and of other sections.
    void build(const std::string& yaml, const std::string& rest = {}) {
        const auto config = test::configuration(yaml, rest);
        config::Diagnostics diagnostics;
        tools = tools::build_toolset(
            config,
            diagnostics,
            {.executor = io.get_executor(),
             .failpoints = failpoints,
             .log = log,
             .observer = &observer}
        );
        INFO(test::all_of(diagnostics));
        REQUIRE(tools != nullptr);
    }
    outbox::Outcome execute(
        const std::string& tool, outbox::Deadline deadline = outbox::Deadline::after(20s)
    ) {
        return test::run_coroutine(
            io, tools->find(tool)->tool->execute(test::call_with("{}"), deadline), 30s
        );
    }
    outbox::Verdict probe(const std::string& tool) {
        return test::run_coroutine(
            io,
            tools->find(tool)->tool->probe(test::call_with("{}"), outbox::Deadline::after(20s)),
            30s
        );
    }
};

}  // namespace tests
