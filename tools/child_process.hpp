#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

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
    std::size_t output_limit = 1024 * 1024;
};

// A started process in a process group of its own, with nothing of ours open but its three streams.
struct Spawned {
    int error = 0;  // errno; 0: it runs
    pid_t pid = -1;
    Descriptor output;  // read end of its standard output
    Descriptor errors;  // read end of its standard error
    Descriptor handle;  // pidfd: readable once it ended; may be missing on old kernels
};
// posix_spawn and not Boost.Process v2: that forks (a multi-threaded process with a big heap), runs
// Asio's fork handlers in the child, has no initializer for process groups, and leaves Asio's
// sockets open in the child, since Asio opens them without CLOEXEC. posix_spawn shares the memory
// until exec, reports a failed exec itself, and closes everything from 3 on.
[[nodiscard]] Spawned spawn(const ProcessSpec& spec);

}  // namespace tools
