#include "tools/child_process.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "tools/command_keeper.hpp"

namespace tools {
namespace {

// A file in memory instead of a pipe: the child can read it at its own pace or not at all, and
// nobody here has to write, wait or get a SIGPIPE.
Descriptor input_file(const std::string& input) {
    if (input.empty()) return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    Descriptor file(::memfd_create("outbox-stdin", MFD_CLOEXEC));
    std::size_t written = 0;
    while (file.valid() && written < input.size()) {
        const auto n = ::write(file.get(), input.data() + written, input.size() - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return {};
        written += static_cast<std::size_t>(n);
    }
    if (file.valid() && ::lseek(file.get(), 0, SEEK_SET) != 0) return {};
    return file;
}

bool make_pipe(Descriptor& read_end, Descriptor& write_end) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
    return true;
}

// Packets, so that a report is read whole or not at all.
bool make_socket(Descriptor& ours, Descriptor& theirs) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    ours = Descriptor(ends[0]);
    theirs = Descriptor(ends[1]);
    return true;
}

// A socket and not a pipe: writing to a command that is gone gives an error and no SIGPIPE.
bool make_input(Descriptor& ours, Descriptor& theirs) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
    ours = Descriptor(ends[0]);
    theirs = Descriptor(ends[1]);
    return ::shutdown(ours.get(), SHUT_RD) == 0;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> out;
    out.reserve(texts.size() + 1);
    for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

// Where execvp would look: the name itself when it has a slash, else the daemon's PATH.
std::vector<std::string> programs(const std::string& name) {
    if (name.empty() || name.find('/') != std::string::npos) return {name};
    const char* variable = std::getenv("PATH");
    const std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
    std::vector<std::string> out;
    for (std::size_t begin = 0; begin <= path.size();) {
        const auto end = std::min(path.find(':', begin), path.size());
        const auto folder = path.substr(begin, end - begin);
        out.push_back(folder.empty() ? name : folder + "/" + name);
        begin = end + 1;
    }
    return out;
}

timespec to_timespec(outbox::BootClock::time_point at) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(at.time_since_epoch());
    timespec out{};
    out.tv_sec = static_cast<time_t>(seconds.count());
    out.tv_nsec = static_cast<long>((at.time_since_epoch() - seconds).count());
    return out;
}

// No signal reaches the child before it has let go of the daemon's handlers, which would write into
// pipes that it shares with the daemon.
pid_t fork_keeper(const KeeperPlan& plan) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = ::fork();
    if (pid == 0) keep_command(plan);
    const int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return pid;
}

}  // namespace

void Descriptor::reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

Spawned spawn(const ProcessSpec& spec, outbox::Deadline deadline) {
    Spawned child;
    Descriptor output;
    Descriptor errors;
    Descriptor control;
    Descriptor input;
    if (!spec.interactive) input = input_file(spec.input);
    if (spec.interactive && !make_input(child.input, input)) {
        child.error = errno;
        return child;
    }
    if (!input.valid() || !make_pipe(child.output, output) || !make_pipe(child.errors, errors) ||
        !make_socket(child.control, control)) {
        child.error = errno;
        return child;
    }
    const auto paths = programs(spec.argv.front());
    const auto candidates = pointers(paths);
    const auto argv = pointers(spec.argv);
    const auto environment = pointers(spec.environment);
    const KeeperPlan plan{
        .input = input.get(),
        .output = output.get(),
        .errors = errors.get(),
        .control = control.get(),
        .directory = spec.directory.empty() ? nullptr : spec.directory.c_str(),
        .programs = candidates.data(),
        .argv = argv.data(),
        .environment = environment.data(),
        .deadline = to_timespec(deadline.at),
    };
    child.keeper = fork_keeper(plan);
    if (child.keeper < 0) {
        child.error = errno;
        return child;
    }
    child.handle = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child.keeper, 0)));
    return child;
}

}  // namespace tools
