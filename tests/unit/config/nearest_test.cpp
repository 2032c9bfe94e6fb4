#include "config/nearest.hpp"

#include "tests/support/catch.hpp"

using config::edit_distance;
using config::nearest;

TEST_CASE("edit distance", "[config]") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("abc", "abc") == 0);
    CHECK(edit_distance("ABC", "abc") == 0);
    CHECK(edit_distance("concurency", "concurrency") == 1);
    CHECK(edit_distance("tyep", "type") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest name is one that was meant", "[config]") {
    const std::vector<std::string> known{
        "timeout", "connect_timeout", "retry", "url", "type", "description"
    };
    CHECK(nearest("timout", known) == "timeout");
    CHECK(nearest("time_out", known) == "timeout");
    CHECK(nearest("URL", known) == "url");
    CHECK(nearest("ulr", known) == "url");
    CHECK(nearest("desc", known) == "description");
    CHECK(nearest("typ", known) == "type");
    CHECK_FALSE(nearest("headers", known));
    CHECK_FALSE(nearest("x", known));
    CHECK_FALSE(nearest("zz", {"db", "x", "ab"}));  // two letters, both others
    CHECK_FALSE(nearest("zzz", {"zab"}));
    CHECK(nearest("dv", {"db", "dev"}));
    CHECK_FALSE(nearest(std::string(10'000, 't'), known));
    CHECK(config::nearest_hint("headers", {"a", "b"}) == "known here: a, b");
    CHECK(config::nearest_hint("retrry", known) == "did you mean retry?");
    CHECK(config::nearest_hint("x", {}).empty());
}
