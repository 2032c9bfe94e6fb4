#include "daemon/duration.hpp"

#include "tests/support/catch.hpp"

using outboxd::parse_duration;
using namespace std::chrono_literals;

TEST_CASE("a duration is a whole number and a unit") {
    CHECK(parse_duration("250ms") == 250ms);
    CHECK(parse_duration("30s") == 30s);
    CHECK(parse_duration("5m") == 5min);
    CHECK(parse_duration("24h") == 24h);
    CHECK(parse_duration("30d") == 720h);
    CHECK(parse_duration("0s") == 0s);
}

TEST_CASE("a duration without a unit, with a sign or beyond a lifetime is none") {
    for (const char* text : {"", "30", "s", "-1s", "+1s", "1.5s", "1 s", "1s ", "1w", "99999999999d",
                             "99999999999999999999s"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_duration(text));
    }
}
