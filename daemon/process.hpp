#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace outboxd {

// Whom a child runs as, looked up before the fork.
struct User {
    uid_t uid = 0;
    gid_t gid = 0;
    std::vector<gid_t> groups;
    std::string name;
    std::string home;
};
[[nodiscard]] std::optional<User> find_user(const std::string& name);
[[nodiscard]] std::optional<User> find_user(uid_t uid);

struct ProcessOptions {
    std::vector<std::string> argv;                         // argv[0] is a path
    std::vector<std::pair<std::string, std::string>> env;  // on top of this process's own
    std::optional<std::string> output;  // stdout and stderr are appended to this file
    std::optional<User> user;           // needs root
    int death_signal = SIGTERM;  // the kernel sends it when the thread that started the child dies
};

// How a process ended.
struct Exit {
    int code = -1;   // of exit(); −1 when a signal ended it
    int signal = 0;  // 0: it exited by itself
};

// A child in a process group of its own, so that Ctrl-C in the terminal reaches only us. Start it
// on a thread that lives as long as the child may (the main thread): the kernel's death signal
// hangs on that thread. The destructor kills what still runs.
class Process {
 public:
    // Throws std::runtime_error when it cannot be started at all.
    explicit Process(const ProcessOptions& options);
    Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), exit_(other.exit_) {}
    Process& operator=(Process&&) = delete;
    ~Process();

    [[nodiscard]] pid_t pid() const { return pid_; }
    // Empty while it runs.
    std::optional<Exit> poll();
    Exit wait();
    std::optional<Exit> wait_for(std::chrono::milliseconds limit);
    void signal(int number);
    // Sends the signal, waits, and kills when the time is up.
    Exit stop(int number, std::chrono::milliseconds limit);

 private:
    pid_t pid_ = -1;
    std::optional<Exit> exit_;
};

// Runs a program to its end.
Exit run_process(const ProcessOptions& options);

}  // namespace outboxd
