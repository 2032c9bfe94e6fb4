#include "outbox/traceparent.hpp"

#include <regex>
#include <set>

#include "tests/support/catch.hpp"

using outbox::child_traceparent;

TEST_CASE("a child keeps the trace and the flags, and has a span id of its own") {
    const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) {
        const auto child = child_traceparent(parent);
        CHECK(std::regex_match(
            child, std::regex("00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01")
        ));
        CHECK(child != parent);
        CHECK(child.find("-0000000000000000-") == std::string::npos);
        seen.insert(child);
    }
    CHECK(seen.size() == 1000);
    // A later version may say more; what we hand on is ours.
    CHECK(child_traceparent("cc" + parent.substr(2)).substr(0, 3) == "00-");
    CHECK(child_traceparent("00-too-short") == "00-too-short");
}

TEST_CASE("the log has the trace's id, and nothing where there is none") {
    CHECK(
        outbox::trace_id("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") ==
        "4bf92f3577b34da6a3ce929d0e0e4736"
    );
    CHECK(outbox::trace_id(std::nullopt).empty());
    CHECK(outbox::trace_id("nonsense").empty());
}
