#include "tools/command_keeper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace tools {
namespace {

constexpr int kControl = STDERR_FILENO + 1;
constexpr int kAboveStreams = 10;  // where a descriptor is out of the way of 0 to 3
constexpr int kRoundMs = 10;
constexpr int kRoundsBlind = 100;  // of ending what the kernel does not list

// One command and what its keeper waits for.
struct Kept {
    pid_t command = -1;
    int result = -1;    // of its exec: closed by a success, else errno
    int timer = -1;     // the deadline
    int children = -1;  // a child's state changed
    bool reported = false;
};

void report(int control, KeeperReport::Kind kind, int value, int status = 0) {
    const KeeperReport said{kind, value, status};
    // A daemon that is gone hears nothing; its successor asks the other side.
    (void)::send(control, &said, sizeof said, MSG_NOSIGNAL);
}

void close_from(int first) {
    if (::close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    for (int fd = first; static_cast<rlim_t>(fd) < limit.rlim_cur; ++fd) ::close(fd);
}

// The command's streams become 0 to 2 and the socket 3; everything else is closed, above all the
// daemon's ends of other keepers' sockets: whoever holds one hides the daemon's death from them.
bool take_descriptors(const KeeperPlan& plan) {
    const int given[] = {plan.input, plan.output, plan.errors, plan.control};
    int moved[4];
    for (int i = 0; i < 4; ++i) {
        moved[i] = ::fcntl(given[i], F_DUPFD_CLOEXEC, kAboveStreams);
        if (moved[i] < 0) return false;
    }
    for (int i = 0; i < kControl; ++i) {
        if (::dup2(moved[i], i) < 0) return false;
    }
    if (::dup3(moved[kControl], kControl, O_CLOEXEC) < 0) return false;
    close_from(kControl + 1);
    return true;
}

// The daemon's handlers and what it ignores are not the command's business. All signals are blocked
// here, so a SIGTERM to the whole service ends no keeper.
void reset_signals() {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    for (int signal = 1; signal < NSIG; ++signal) (void)::sigaction(signal, &action, nullptr);
}

bool passed(const timespec& deadline) {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    if (now.tv_sec != deadline.tv_sec) return now.tv_sec > deadline.tv_sec;
    return now.tv_nsec >= deadline.tv_nsec;
}

// Like execvpe, with the search done before the fork. Returns errno.
int execute(const KeeperPlan& plan) {
    int denied = 0;
    int error = ENOENT;
    for (char* const* program = plan.programs; *program != nullptr; ++program) {
        ::execve(*program, plan.argv, plan.environment);
        error = errno;
        if (error == EACCES) denied = error;
        if (error != EACCES && error != ENOENT && error != ENOTDIR && error != ESTALE) return error;
    }
    return denied != 0 ? denied : error;
}

[[noreturn]] void become_command(const KeeperPlan& plan, pid_t keeper, int result) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != keeper) ::_exit(127);  // it died before it could be noticed
    int error = 0;
    if (plan.directory != nullptr && ::chdir(plan.directory) != 0) error = errno;
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (error == 0 && passed(plan.deadline)) error = ETIME;
    if (error == 0) error = execute(plan);
    (void)!::write(result, &error, sizeof error);
    ::_exit(127);
}

// False: errno says why the command does not run.
bool start(const KeeperPlan& plan, Kept& kept) {
    // Known before there is a command that the timer would end: it was never sent.
    if (passed(plan.deadline)) {
        errno = ETIME;
        return false;
    }
    sigset_t child_signal;
    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    kept.children = ::signalfd(-1, &child_signal, SFD_CLOEXEC | SFD_NONBLOCK);
    kept.timer = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    int ends[2];
    if (kept.children < 0 || kept.timer < 0 || ::pipe2(ends, O_CLOEXEC) != 0) return false;
    itimerspec until{};
    until.it_value = plan.deadline;
    if (::timerfd_settime(kept.timer, TFD_TIMER_ABSTIME, &until, nullptr) != 0) return false;
    const pid_t keeper = ::getpid();
    kept.command = ::_Fork();
    if (kept.command < 0) return false;
    if (kept.command == 0) become_command(plan, keeper, ends[1]);
    ::setpgid(kept.command, kept.command);  // here as well: it must not be late
    ::close(ends[1]);
    // Only the command's processes keep its pipes open.
    for (int stream = 0; stream < kControl; ++stream) ::close(stream);
    kept.result = ends[0];
    report(kControl, KeeperReport::Kind::command, kept.command);
    return true;
}

void look_at_exec(Kept& kept) {
    int error = 0;
    if (::read(kept.result, &error, sizeof error) == sizeof error) {
        report(kControl, KeeperReport::Kind::not_started, error);
        kept.reported = true;
    }
    ::close(kept.result);
    kept.result = -1;
}

// Reports the command's end but leaves it a zombie, so that its group can still be named. Others
// that were handed to this process are collected.
void look_at_children(Kept& kept) {
    signalfd_siginfo ignored;
    while (::read(kept.children, &ignored, sizeof ignored) > 0) {
    }
    for (;;) {
        siginfo_t info{};
        if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
        if (info.si_pid != kept.command) {
            ::waitpid(info.si_pid, nullptr, WNOHANG);
            continue;
        }
        // An exec that failed ends the process too.
        if (kept.result >= 0) look_at_exec(kept);
        if (!kept.reported) {
            report(kControl, KeeperReport::Kind::ended, info.si_code, info.si_status);
        }
        kept.reported = true;
        return;
    }
}

// Until the deadline, or until the daemon is gone or asks for the end.
void watch(Kept& kept) {
    for (;;) {
        pollfd sources[] = {
            {kControl, POLLIN, 0},
            {kept.timer, POLLIN, 0},
            {kept.children, POLLIN, 0},
            {kept.result, POLLIN, 0},
        };
        if (::poll(sources, 4, -1) < 0 && errno != EINTR) return;
        if (sources[3].revents != 0) look_at_exec(kept);
        if (sources[2].revents != 0) look_at_children(kept);
        if (sources[0].revents != 0 || sources[1].revents != 0) return;
    }
}

// /proc may be another namespace's: only what waitid knows is a child.
void kill_child(pid_t pid) {
    siginfo_t info{};
    if (pid <= 0) return;
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    ::kill(pid, SIGKILL);
}

// False: the kernel does not list them.
bool kill_children() {
    const int list = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (list < 0) return false;
    char text[1024];
    pid_t pid = 0;
    for (ssize_t count; (count = ::read(list, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < count; ++i) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else {
                kill_child(pid);
                pid = 0;
            }
        }
    }
    kill_child(pid);
    ::close(list);
    return true;
}

// Kills the group at once. What left the group becomes a child of this process as soon as its own
// parent is dead, and is killed in the next round.
void end_all(const Kept& kept) {
    ::kill(-kept.command, SIGKILL);
    ::kill(kept.command, SIGKILL);
    for (int round = 0;; ++round) {
        const bool listed = kill_children();
        siginfo_t info{};
        do {
            info.si_pid = 0;
            if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0) return;  // none is left
        } while (info.si_pid != 0);
        if (!listed && round >= kRoundsBlind) return;
        pollfd wake{kept.children, POLLIN, 0};
        ::poll(&wake, 1, kRoundMs);
        signalfd_siginfo ignored;
        while (::read(kept.children, &ignored, sizeof ignored) > 0) {
        }
    }
}

}  // namespace

void keep_command(const KeeperPlan& plan) noexcept {
    ::setpgid(0, 0);
    // Not the daemon's name: killall of that one leaves the keepers to do their work.
    ::prctl(PR_SET_NAME, "command-keeper");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    reset_signals();
    if (!take_descriptors(plan)) {
        report(plan.control, KeeperReport::Kind::not_started, errno);
        ::_exit(0);
    }
    Kept kept;
    if (!start(plan, kept)) {
        report(kControl, KeeperReport::Kind::not_started, errno);
        ::_exit(0);
    }
    watch(kept);
    end_all(kept);
    ::_exit(0);
}

}  // namespace tools
