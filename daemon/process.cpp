#include "daemon/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "daemon/pause.hpp"

extern char** environ;

namespace outboxd {
namespace {

User user_of(const passwd& entry) {
    User user{entry.pw_uid, entry.pw_gid, {}, entry.pw_name, entry.pw_dir};
    int count = 64;
    user.groups.resize(static_cast<std::size_t>(count));
    if (getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count) < 0) count = 0;
    user.groups.resize(static_cast<std::size_t>(count));
    return user;
}

// What a child must not inherit: it would speak to systemd in our name.
bool belongs_to_us_alone(std::string_view variable) {
    static constexpr std::array<std::string_view, 6> names = {
        "NOTIFY_SOCKET",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
        "LISTEN_PID",
        "LISTEN_FDS",
        "JOURNAL_STREAM"
    };
    for (const auto name : names) {
        if (variable.starts_with(name) && variable.substr(name.size()).starts_with('='))
            return true;
    }
    return false;
}

std::vector<std::string> environment_of(const ProcessOptions& options) {
    std::vector<std::string> variables;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view variable = *entry;
        bool replaced = belongs_to_us_alone(variable);
        for (const auto& [name, value] : options.env) {
            replaced |= variable.starts_with(name) && variable.substr(name.size()).starts_with('=');
        }
        if (!replaced) variables.emplace_back(variable);
    }
    for (const auto& [name, value] : options.env) variables.push_back(name + "=" + value);
    return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (auto& string : strings) pointers.push_back(string.data());
    pointers.push_back(nullptr);
    return pointers;
}

// Everything the child needs, made before the fork: after it only async-signal-safe calls follow.
struct Prepared {
    std::vector<std::string> argv_text;
    std::vector<std::string> environment_text;
    std::vector<char*> argv;
    std::vector<char*> environment;
    int input = -1;
    int output = -1;
    int report[2] = {-1, -1};  // the child writes errno here when it cannot start
    pid_t parent = 0;

    explicit Prepared(const ProcessOptions& options)
        : argv_text(options.argv),
          environment_text(environment_of(options)),
          argv(pointers_to(argv_text)),
          environment(pointers_to(environment_text)),
          input(open("/dev/null", O_RDONLY | O_CLOEXEC)),
          parent(getpid()) {
        if (options.output) {
            output = open(options.output->c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
            if (output < 0) {
                const int error = errno;
                close(input);
                throw std::runtime_error(
                    fmt::format("cannot write {}: {}", *options.output, std::strerror(error))
                );
            }
        }
        if (pipe2(report, O_CLOEXEC) != 0) throw std::runtime_error("no pipe: too many open files");
    }
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;
    ~Prepared() {
        for (const int descriptor : {input, output, report[0], report[1]}) {
            if (descriptor >= 0) close(descriptor);
        }
    }
};

[[noreturn]] void become(const Prepared& prepared, const ProcessOptions& options) {
    const auto give_up = [&] {
        const int error = errno;
        [[maybe_unused]] const auto n = write(prepared.report[1], &error, sizeof error);
        _exit(127);
    };
    setpgid(0, 0);
    if (options.user) {
        const User& user = *options.user;
        if (setgroups(user.groups.size(), user.groups.data()) != 0) give_up();
        if (setgid(user.gid) != 0 || setuid(user.uid) != 0) give_up();
        if (chdir("/") != 0) give_up();  // that user may not be able to read our directory
    }
    // After the change of user: it clears the death signal.
    prctl(PR_SET_PDEATHSIG, options.death_signal);
    if (getppid() != prepared.parent) _exit(127);
    dup2(prepared.input, 0);
    if (prepared.output >= 0) {
        dup2(prepared.output, 1);
        dup2(prepared.output, 2);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT})
        std::signal(number, SIG_DFL);
    execve(prepared.argv[0], prepared.argv.data(), prepared.environment.data());
    give_up();
    _exit(127);
}

Exit exit_of(int status) {
    if (WIFEXITED(status)) return {WEXITSTATUS(status), 0};
    return {-1, WTERMSIG(status)};
}

}  // namespace

std::optional<User> find_user(const std::string& name) {
    const passwd* entry = getpwnam(name.c_str());
    return entry == nullptr ? std::nullopt : std::optional{user_of(*entry)};
}

std::optional<User> find_user(uid_t uid) {
    const passwd* entry = getpwuid(uid);
    return entry == nullptr ? std::nullopt : std::optional{user_of(*entry)};
}

Process::Process(const ProcessOptions& options) {
    Prepared prepared(options);
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error(fmt::format("cannot fork: {}", std::strerror(errno)));
    if (pid_ == 0) become(prepared, options);
    close(std::exchange(prepared.report[1], -1));
    int error = 0;
    // Reads nothing once the program runs: the pipe closes on exec.
    if (read(prepared.report[0], &error, sizeof error) == sizeof error) {
        wait();
        throw std::runtime_error(
            fmt::format("cannot start {}: {}", options.argv.front(), std::strerror(error))
        );
    }
}

Process::~Process() {
    if (pid_ < 0 || poll()) return;
    signal(SIGKILL);
    wait();
}

std::optional<Exit> Process::poll() {
    if (exit_ || pid_ < 0) return exit_;
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) exit_ = exit_of(status);
    if (ended < 0 && errno != EINTR) exit_ = Exit{};  // somebody else reaped it
    return exit_;
}

Exit Process::wait() {
    while (!exit_) {
        int status = 0;
        const pid_t ended = waitpid(pid_, &status, 0);
        if (ended == pid_) exit_ = exit_of(status);
        if (ended < 0 && errno != EINTR) exit_ = Exit{};
    }
    return *exit_;
}

std::optional<Exit> Process::wait_for(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!poll() && std::chrono::steady_clock::now() < end) {
        pause_for(std::chrono::milliseconds{5});
    }
    return exit_;
}

void Process::signal(int number) {
    if (pid_ > 0 && !exit_) kill(pid_, number);
}

Exit Process::stop(int number, std::chrono::milliseconds limit) {
    if (poll()) return *exit_;
    signal(number);
    if (!wait_for(limit)) signal(SIGKILL);
    return wait();
}

Exit run_process(const ProcessOptions& options) {
    return Process(options).wait();
}

}  // namespace outboxd
