#include "config/units.hpp"

#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using config::parse_duration;
using config::parse_rate;
using config::parse_size;

TEST_CASE("durations need a unit", "[config]") {
    CHECK(parse_duration("250ms") == 250ms);
    CHECK(parse_duration("30s") == 30s);
    CHECK(parse_duration("5m") == 5min);
    CHECK(parse_duration("24h") == 24h);
    CHECK(parse_duration("30d") == std::chrono::hours{720});
    CHECK(parse_duration("0s") == 0ms);
    for (const auto* bad :
         {"",
          "30",
          "s",
          "-5s",
          "+5s",
          "1.5s",
          "5 s",
          "5S",
          "5sec",
          "1h30m",
          "99999999999999999999s",
          "999999999999d"}) {
        INFO(bad);
        CHECK_FALSE(parse_duration(bad));
    }
}

TEST_CASE("durations are written with the largest whole unit", "[config]") {
    CHECK(config::duration_text(0ms) == "0s");
    CHECK(config::duration_text(1500ms) == "1500ms");
    CHECK(config::duration_text(90s) == "90s");
    CHECK(config::duration_text(10min) == "10m");
    CHECK(config::duration_text(24h) == "24h");
    CHECK(config::duration_text(std::chrono::hours{720}) == "30d");
}

TEST_CASE("sizes need a unit", "[config]") {
    CHECK(parse_size("512B") == 512u);
    CHECK(parse_size("256KiB") == 262'144u);
    CHECK(parse_size("1MiB") == 1'048'576u);
    CHECK(parse_size("2GiB") == 2'147'483'648u);
    for (const auto* bad : {"", "1", "1KB", "1kib", "-1B", "1.5MiB", "9999999999999GiB"}) {
        INFO(bad);
        CHECK_FALSE(parse_size(bad));
    }
    for (const auto* text : {"0B", "513B", "64KiB", "1MiB", "3GiB"}) {
        CHECK(config::size_text(*parse_size(text)) == text);
    }
}

TEST_CASE("rates are per second, minute or hour", "[config]") {
    CHECK(parse_rate("20/s") == 20.0);
    CHECK(parse_rate("0.5/s") == 0.5);
    CHECK(parse_rate("120/m") == 2.0);
    CHECK(parse_rate("36/h") == 0.01);
    for (const auto* bad :
         {"", "20", "/s", "0/s", "-1/s", "20/d", "20 /s", "1e9/s", "nan/s", "inf/s"}) {
        INFO(bad);
        CHECK_FALSE(parse_rate(bad));
    }
    for (const auto* text : {"20/s", "0.5/s", "1/m", "5/h", "7/h"}) {
        INFO(text);
        CHECK(parse_rate(config::rate_text(*parse_rate(text))) == parse_rate(text));
    }
    CHECK(config::rate_text(20) == "20/s");
    CHECK(config::rate_text(1.0 / 60) == "1/m");
}
