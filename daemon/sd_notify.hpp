#pragma once

#include <chrono>
#include <optional>
#include <string_view>

// What systemd is told about this service; without systemd every call does nothing.
namespace outboxd::sd {

void ready(std::string_view status);
void reloading();
void stopping(std::string_view status);
void watchdog();

// How often watchdog() must be called (half of WatchdogSec); empty: nobody watches.
[[nodiscard]] std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace outboxd::sd
