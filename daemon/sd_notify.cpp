#include "daemon/sd_notify.hpp"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include <cstdint>

namespace outboxd::sd {
namespace {

void notify(const std::string& state) {
    sd_notify(0, state.c_str());
}

}  // namespace

void ready(std::string_view status) {
    notify(fmt::format("READY=1\nSTATUS={}", status));
}

void reloading() {
    // Type=notify-reload wants the time, to tell this reload from an earlier one.
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto microseconds = std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000;
    notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", microseconds));
}

void stopping(std::string_view status) {
    notify(fmt::format("STOPPING=1\nSTATUS={}", status));
}

void watchdog() {
    notify("WATCHDOG=1");
}

std::optional<std::chrono::microseconds> watchdog_interval() {
    std::uint64_t microseconds = 0;
    if (sd_watchdog_enabled(0, &microseconds) <= 0) return std::nullopt;
    return std::chrono::microseconds{microseconds / 2};
}

}  // namespace outboxd::sd
