#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "outbox/clock.hpp"

namespace tools {

// A file descriptor with an owner.
class Descriptor {
 public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() { reset(); }
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        reset();
        fd_ = std::exchange(other.fd_, -1);
        return *this;
    }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool valid() const { return fd_ >= 0; }
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    void reset();

 private:
    int fd_ = -1;
};

struct ProcessSpec {
    std::vector<std::string> argv;
    std::vector<std::string> environment;  // NAME=value, nothing else is inherited
    std::string directory;                 // empty: the daemon's
    std::string input;                     // standard input, as a file
    bool interactive = false;              // instead: a socket that stays open
    std::size_t output_limit = 1024 * 1024;
};

// A keeper that was started, with nothing of ours open but the command's three streams and its end
// of the control socket. Whoever closes or loses the daemon's end ends the command and all that
// descends from it.
struct Spawned {
    int error = 0;       // errno; 0: the keeper runs, and reports whether the command does
    pid_t keeper = -1;   // ours to collect
    Descriptor input;    // our end of an interactive command's standard input
    Descriptor output;   // read end of the command's standard output
    Descriptor errors;   // read end of its standard error
    Descriptor control;  // KeeperReports; shut down: end it
    Descriptor handle;   // pidfd of the keeper; may be missing on old kernels
};
// A keeper per command (see command_keeper.hpp) and not posix_spawn of the command itself, which
// cost a third of it: a command that outlives its daemon (kill -9) or its deadline (SIGSTOP) has
// its effect after a probe said "absent". Not Boost.Process v2: it runs Asio's fork handlers in the
// child, has no initializer for process groups, and leaves Asio's sockets open, which a keeper must
// not.
[[nodiscard]] Spawned spawn(const ProcessSpec& spec, outbox::Deadline deadline);

}  // namespace tools
