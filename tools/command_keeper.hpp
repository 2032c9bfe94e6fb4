#pragma once

#include <ctime>
#include <type_traits>

namespace tools {

// What a keeper is told, made ready before the fork: behind it there is no malloc and no lock.
struct KeeperPlan {
    int input = -1;  // the command's three streams
    int output = -1;
    int errors = -1;
    int control = -1;                 // a socket; its other end is the daemon's alone
    const char* directory = nullptr;  // null: the daemon's
    char* const* programs = nullptr;  // the paths to try, in the order of PATH
    char* const* argv = nullptr;
    char* const* environment = nullptr;
    timespec deadline{};  // absolute, CLOCK_BOOTTIME
};

// What a keeper says over its socket, a packet each: the command's pid, then how it went. A keeper
// that had to end the command (deadline, daemon gone, asked to) says nothing more.
struct KeeperReport {
    enum class Kind : int {
        command,      // value is its pid and process group; it may not have started yet
        not_started,  // value is errno; ETIME: the deadline passed first
        ended,        // by itself: si_code and si_status
    };
    Kind kind = Kind::command;
    int value = 0;
    int status = 0;
};
static_assert(std::is_trivially_copyable_v<KeeperReport>);

// The life of a keeper: the process between the daemon and one command. It holds no thread and no
// descriptor of the daemon's, so neither kill -9 nor SIGSTOP of the daemon lets a command act after
// its deadline. It starts the command, reports its end, and kills all that descends from it: at the
// deadline, as soon as the daemon is gone, or when the daemon shuts its side of the socket down.
// Runs in the child of a fork of a multi-threaded process: async-signal-safe calls only.
[[noreturn]] void keep_command(const KeeperPlan& plan) noexcept;

}  // namespace tools
