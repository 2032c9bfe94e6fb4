#include "tools/retry_after.hpp"

#include "tests/unit/tools/tool_fixture.hpp"

using namespace test;

namespace {

using std::chrono::milliseconds;
const std::chrono::system_clock::time_point kNow{784'111'700s};  // Sun, 06 Nov 1994 08:48:20 GMT

std::optional<milliseconds> wait(
    const std::string& setting,
    const std::string& header,
    const std::string& value,
    const std::string& body = {}
) {
    config::Diagnostics diagnostics;
    const auto compiled = tools::RetryAfter::compile({.value = setting, .mark = {}}, diagnostics);
    REQUIRE(compiled.has_value());
    tools::Answer answer;
    if (!header.empty()) answer.headers.emplace_back(header, value);
    answer.text = body;
    tools::parse_body(answer);
    return compiled->read(answer, kNow);
}

}  // namespace

TEST_CASE("Retry-After in seconds and as a date") {
    CHECK(wait("header", "retry-after", "120") == 120s);
    CHECK(wait("header", "Retry-After", "0") == 0s);
    CHECK(wait("header", "Retry-After", "1.5") == 1500ms);
    CHECK(wait("header", "Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT") == 77s);
    CHECK(wait("header", "Retry-After", "Sun, 06 Nov 1994 08:00:00 GMT") == 0s);
    CHECK(wait("header", "Retry-After", "1994-11-06T08:48:30Z") == 10s);
    CHECK(wait("header", "Retry-After", "99999999") == std::chrono::hours{24 * 30});
}

TEST_CASE("an epoch time is a point in time") {
    const std::chrono::system_clock::time_point now{1'767'323'045s};
    config::Diagnostics diagnostics;
    const auto compiled =
        tools::RetryAfter::compile({.value = "header:X-Reset", .mark = {}}, diagnostics);
    tools::Answer answer;
    answer.headers.emplace_back("X-Reset", "1767323055");
    CHECK(compiled->read(answer, now) == 10s);
    answer.headers[0].second = "1767323055000";
    CHECK(compiled->read(answer, now) == 10s);
    // The other side's clock is the one its dates are meant on.
    answer.headers.emplace_back("Date", "Fri, 02 Jan 2026 03:04:11 GMT");
    CHECK(compiled->read(answer, now) == 4s);
}

TEST_CASE("what cannot be understood is no wait") {
    for (const auto* value :
         {"", "soon", "-5", "-1e999", "Sun, 31 Feb 1994 08:49:37 GMT", "0x10", "NaN"}) {
        INFO(value);
        CHECK_FALSE(wait("header", "Retry-After", value).has_value());
    }
    CHECK_FALSE(wait("header", "X-Other", "5").has_value());
    CHECK_FALSE(wait("/none", "", "", "{}").has_value());
}

TEST_CASE("a wait beyond what fits is the longest one, never none") {
    for (const auto* value :
         {"99999999999",
          "99999999999999",
          "999999999999999999",
          "99999999999999999999",
          "1e999",
          "Fri, 31 Dec 9999 23:59:59 GMT"}) {
        INFO(value);
        CHECK(wait("header", "Retry-After", value) == std::chrono::hours{24 * 30});
    }
}

TEST_CASE("fixed waits and waits in the body") {
    CHECK(wait("2s", "", "") == 2s);
    CHECK(wait("250ms", "", "") == 250ms);
    CHECK(wait("/error/wait", "", "", R"({"error": {"wait": 7}})") == 7s);
    CHECK(wait("/error/wait", "", "", R"({"error": {"wait": "7"}})") == 7s);
    config::Diagnostics diagnostics;
    CHECK_FALSE(tools::RetryAfter::compile({.value = "2", .mark = {}}, diagnostics).has_value());
    CHECK_THAT(all_of(diagnostics), ContainsSubstring("a duration such as 2s"));
}
