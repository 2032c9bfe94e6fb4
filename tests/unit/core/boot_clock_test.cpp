#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "outbox/clock.hpp"
#include "tests/support/catch.hpp"

using namespace std::chrono_literals;

namespace {

std::atomic<time_t> slept{0};  // s

}  // namespace

// This program's own, before the library's: the one clock that goes on while the machine sleeps
// can be told that it slept.
extern "C" int clock_gettime(clockid_t id, timespec* time) noexcept {
    const auto result = static_cast<int>(::syscall(SYS_clock_gettime, id, time));
    if (id == CLOCK_BOOTTIME) time->tv_sec += slept;
    return result;
}

TEST_CASE("the boot clock counts what a suspended machine sleeps") {
    const auto before = outbox::BootClock::now();
    const outbox::Deadline deadline{before + 1h};
    const auto steady = std::chrono::steady_clock::now();
    CHECK_FALSE(deadline.passed());
    slept = 7200;
    CHECK(outbox::BootClock::now() - before >= 2h);
    CHECK(deadline.passed());
    CHECK(std::chrono::steady_clock::now() - steady < 1h);
    slept = 0;
}
