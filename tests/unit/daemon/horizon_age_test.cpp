#include "daemon/horizon_age.hpp"
#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using outboxd::HorizonAge;

namespace {

// A daemon that looks every 30 s at a database which gives out 100 transaction ids in between.
struct Watch {
    HorizonAge age;
    HorizonAge::Time now{};
    std::int64_t next = 1000;

    // The age after a look with the horizon at this id.
    double at(std::int64_t horizon) {
        now += 30s;
        next += 100;
        return age.observe(now, next, next - horizon).count();
    }
    double free() { return at(next + 100); }
};

}  // namespace

TEST_CASE("a horizon that moves along has no age") {
    Watch w;
    for (int i = 0; i < 10; ++i) CHECK(w.free() == 0);
    // One look behind, as with a transaction of a moment: at most that look.
    for (int i = 0; i < 10; ++i) CHECK(w.at(w.next) <= 30);
}

TEST_CASE("the age of a held horizon grows by the clock, and is gone when it is let go") {
    Watch w;
    w.free();
    const auto held = w.next;
    for (int i = 1; i <= 200; ++i) CHECK(w.at(held) == 30.0 * i);
    CHECK(w.free() == 0);
}

TEST_CASE("when the oldest transaction ends, the next one's age counts from its own begin") {
    Watch w;
    w.free();
    const auto first = w.next;
    for (int i = 0; i < 10; ++i) w.at(first);
    const auto second = w.next;
    for (int i = 0; i < 10; ++i) CHECK(w.at(first) > 300);
    CHECK(w.at(second) == 330);
    CHECK(w.at(second) == 360);
}

TEST_CASE("ids that were given out between two looks count from the look before") {
    Watch w;
    w.free();
    w.free();
    CHECK(w.at(w.next + 50) == 30);
    CHECK(w.at(w.next - 50) == 60);
}

TEST_CASE("what was held before the daemon began counts from then; another server begins anew") {
    Watch w;
    CHECK(w.at(5) == 0);
    CHECK(w.at(5) == 30);
    w.next = 100;  // restored
    CHECK(w.at(5) == 0);
    CHECK(w.at(5) == 30);
}

TEST_CASE("a database in which nothing is written is held back by nobody") {
    HorizonAge age;
    const HorizonAge::Time now{};
    CHECK(age.observe(now, 1000, 0).count() == 0);
    CHECK(age.observe(now + 1h, 1000, 0).count() == 0);
    // And one id later the horizon is what was next all the time.
    CHECK(age.observe(now + 2h, 1001, 1).count() == 3600);
}

TEST_CASE("a horizon held for weeks costs a bounded number of samples, and keeps its age") {
    Watch w;
    w.free();
    const auto held = w.next;
    for (int i = 1; i <= 50'000; ++i) {
        if (w.at(held) != 30.0 * i) FAIL("at look " << i);
    }
    CHECK(w.free() == 0);
}
