#include "tools/process_run.hpp"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/command_keeper.hpp"

using namespace test;
using How = tools::ProcessEnd::How;

namespace {

struct Run {
    tools::ProcessEnd end;
    std::chrono::milliseconds took{};
};

tools::ProcessSpec shell(const std::string& script) {
    tools::ProcessSpec spec;
    spec.argv = {"/bin/sh", "-c", script};
    spec.environment = {"PATH=/usr/bin:/bin"};
    return spec;
}

Run run(tools::ProcessSpec spec, std::chrono::milliseconds deadline = 5s) {
    boost::asio::io_context io;
    const auto began = std::chrono::steady_clock::now();
    Run result;
    result.end = run_coroutine(
        io, tools::run_process(std::move(spec), outbox::Deadline::after(deadline)), 10s
    );
    result.took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - began
    );
    return result;
}

// One that needs no longer than `below`, of a few: a busy machine only ever adds to what it takes.
Run fastest(const tools::ProcessSpec& spec, std::chrono::milliseconds below) {
    auto best = run(spec);
    for (int i = 0; i < 5 && best.took >= below; ++i) best = run(spec);
    return best;
}

bool alive(const std::string& pid) {
    return ::kill(std::stoi(pid), 0) == 0;
}

// Killed processes of a group are collected by init: give it a moment.
bool gone(const std::string& pid) {
    for (int i = 0; i < 1000; ++i) {
        if (!alive(pid)) return true;
        ::usleep(10'000);
    }
    return false;
}

// A daemon of one command: a process that starts it and waits, to be killed or stopped.
class Parent {
 public:
    Parent(const std::string& script, std::chrono::milliseconds deadline) {
        char name[] = "/tmp/outbox-keeper-XXXXXX";
        folder_ = ::mkdtemp(name);
        auto spec = shell("cd " + folder_ + "; " + script);
        pid_ = ::fork();
        REQUIRE(pid_ >= 0);
        if (pid_ == 0) {
            (void)run(std::move(spec), deadline);
            ::_exit(0);
        }
    }
    ~Parent() {
        signal(SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        std::filesystem::remove_all(folder_);
    }
    Parent(const Parent&) = delete;
    Parent& operator=(const Parent&) = delete;

    void signal(int number) const { ::kill(pid_, number); }
    [[nodiscard]] bool wrote(const std::string& name) const {
        return std::filesystem::exists(folder_ + "/" + name);
    }
    // The words of a file, once it is there.
    [[nodiscard]] std::vector<std::string> words(const std::string& name) const {
        for (int i = 0; i < 300 && !wrote(name); ++i) ::usleep(10'000);
        ::usleep(20'000);
        std::ifstream file(folder_ + "/" + name);
        return {std::istream_iterator<std::string>(file), {}};
    }

 private:
    std::string folder_;
    pid_t pid_ = -1;
};

std::ptrdiff_t open_descriptors() {
    const std::filesystem::directory_iterator entries("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
}

}  // namespace

TEST_CASE("exit codes, output and errors") {
    const auto done = run(shell("echo out; echo err >&2; exit 7"));
    CHECK(done.end.how == How::exited);
    CHECK(done.end.code == 7);
    CHECK(done.end.output == "out\n");
    CHECK(done.end.errors == "err\n");
    CHECK_FALSE(done.end.truncated);
}

TEST_CASE("a program that cannot be started never started") {
    tools::ProcessSpec spec;
    spec.argv = {"/no/such/program"};
    CHECK(run(spec).end.how == How::not_started);
    CHECK(run(spec).end.code == ENOENT);
    spec.argv = {"no-such-program-anywhere"};
    CHECK(run(spec).end.code == ENOENT);
    spec.argv = {"/etc/passwd"};
    CHECK(run(spec).end.how == How::not_started);
    spec.argv = {"/bin/true"};
    spec.directory = "/no/such/directory";
    CHECK(run(spec).end.how == How::not_started);
    spec.directory.clear();
    spec.argv = {"/bin/true", std::string(1'000'000, 'x')};
    CHECK(run(spec).end.code == E2BIG);
    CHECK(run(shell("exit 0"), -1ms).end.how == How::not_started);
}

TEST_CASE("standard input, directory, and an environment that is empty but for its own") {
    auto spec = shell("cat; pwd; env | sort");
    spec.input = std::string(300'000, 'i') + "\n";
    spec.directory = "/usr";
    spec.environment = {"PATH=/usr/bin:/bin", "A=1"};
    ::setenv("OUTBOX_TEST_LEAK", "secret", 1);
    const auto done = run(spec);
    CHECK(done.end.output.substr(0, 300'001) == spec.input);
    const auto rest = done.end.output.substr(300'001);
    CHECK_THAT(rest, ContainsSubstring("/usr\nA=1\n"));
    CHECK(rest.find("LEAK") == std::string::npos);
    // A child that does not read its input is no problem.
    spec = shell("exit 3");
    spec.input = std::string(1'000'000, 'i');
    CHECK(run(spec).end.code == 3);
    CHECK(run(shell("cat | wc -c")).end.output.find('0') != std::string::npos);
}

TEST_CASE("nothing of ours is open in the child, and signals are as they were") {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);  // without CLOEXEC, as Asio's sockets are
    const auto done = run(shell("ls /proc/self/fd | wc -l; yes | head -1 >/dev/null; echo done"));
    ::close(ends[0]);
    ::close(ends[1]);
    ::signal(SIGPIPE, SIG_DFL);
    // 0, 1, 2 and the directory that ls itself reads.
    CHECK(done.end.output == "4\ndone\n");
}

TEST_CASE("output is capped and the child goes on") {
    auto spec = shell("head -c 3000000 /dev/zero | tr '\\0' x; exit 5");
    spec.output_limit = 1'000;
    const auto done = run(spec);
    CHECK(done.end.code == 5);
    CHECK(done.end.output == std::string(1'000, 'x'));
    CHECK(done.end.truncated);
}

TEST_CASE("the whole group is killed at the deadline") {
    const auto done = run(shell("sleep 30 & echo $! $$; sleep 30"), 300ms);
    CHECK(done.end.how == How::timed_out);
    CHECK(done.took >= 300ms);
    CHECK(done.took < 15s);
    const auto space = done.end.output.find(' ');
    REQUIRE(space != std::string::npos);
    CHECK(gone(done.end.output.substr(0, space)));
    CHECK(gone(done.end.output.substr(space + 1)));
    // SIGTERM is not asked for, so it cannot be ignored.
    CHECK(run(shell("trap '' TERM INT HUP; sleep 30"), 200ms).took < 15s);
}

TEST_CASE("a signal is not an exit code") {
    const auto done = run(shell("kill -9 $$"));
    CHECK(done.end.how == How::signalled);
    CHECK(done.end.code == SIGKILL);
}

TEST_CASE("a grandchild that keeps the pipe open is waited for one second, then ended") {
    const auto done = run(shell("sleep 30 & echo $!; exit 4"));
    CHECK(done.end.how == How::exited);
    CHECK(done.end.code == 4);
    CHECK(done.took >= 900ms);
    CHECK(done.took < 15s);
    CHECK(gone(done.end.output.substr(0, done.end.output.size() - 1)));
    // Output that arrives within it is kept.
    const auto late = fastest(shell("(sleep 0.2; echo late) & exit 0"), 1s);
    CHECK(late.end.output == "late\n");
    CHECK(late.took < 1s);
}

TEST_CASE("a child that lives on without its pipes is still waited for") {
    const auto done = run(shell("exec >&- 2>&-; sleep 0.3; exit 6"));
    CHECK(done.end.code == 6);
    CHECK(done.took >= 250ms);
}

TEST_CASE("cancelling kills the group") {
    boost::asio::io_context io;
    boost::asio::cancellation_signal signal;
    std::optional<tools::ProcessEnd> end;
    auto task = tools::run_process(shell("echo $$; sleep 30"), outbox::Deadline::after(20s));
    boost::asio::co_spawn(
        io,
        std::move(task),
        boost::asio::bind_cancellation_slot(
            signal.slot(), [&](std::exception_ptr, tools::ProcessEnd e) { end = std::move(e); }
        )
    );
    boost::asio::steady_timer timer(io, 300ms);
    timer.async_wait([&](boost::system::error_code) {
        signal.emit(boost::asio::cancellation_type::terminal);
    });
    run_until(io, [&] { return end.has_value(); }, 3s);
    CHECK(end->how == How::cut);
    REQUIRE_FALSE(end->output.empty());
    io.run_for(500ms);
    CHECK(gone(end->output.substr(0, end->output.size() - 1)));
}

TEST_CASE("many at a time do not block each other") {
    boost::asio::io_context io;
    int done = 0;
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 20; ++i) {
        boost::asio::co_spawn(
            io,
            tools::run_process(shell("sleep 0.5"), outbox::Deadline::after(10s)),
            [&](std::exception_ptr, const tools::ProcessEnd& e) {
                done += e.how == How::exited ? 1 : 0;
            }
        );
    }
    run_until(io, [&] { return done == 20; }, 8s);
    CHECK(std::chrono::steady_clock::now() - began < 5s);
}

TEST_CASE("kill -9 of the daemon ends the command and all it started, without an effect") {
    const Parent parent("sleep 30 & echo $$ $! > pids; sleep 2; echo > effect", 20s);
    const auto pids = parent.words("pids");
    REQUIRE(pids.size() == 2);
    parent.signal(SIGKILL);
    const auto began = std::chrono::steady_clock::now();
    for (const auto& pid : pids) CHECK(gone(pid));
    CHECK(std::chrono::steady_clock::now() - began < 15s);
    ::usleep(2'200'000);
    CHECK_FALSE(parent.wrote("effect"));
}

TEST_CASE("a daemon that is stopped does not extend the deadline") {
    const Parent parent("sleep 30 & echo $$ $! > pids; sleep 3; echo > effect", 1s);
    const auto pids = parent.words("pids");
    REQUIRE(pids.size() == 2);
    parent.signal(SIGSTOP);
    const auto began = std::chrono::steady_clock::now();
    for (const auto& pid : pids) CHECK(gone(pid));
    CHECK(std::chrono::steady_clock::now() - began < 15s);
    ::usleep(3'200'000);
    CHECK_FALSE(parent.wrote("effect"));
    parent.signal(SIGCONT);
}

TEST_CASE("what left the group is ended as well") {
    const auto done = fastest(shell("setsid sleep 30 >/dev/null 2>&1 & echo $!; exit 0"), 900ms);
    CHECK(done.end.code == 0);
    CHECK(done.took < 900ms);
    CHECK(gone(done.end.output.substr(0, done.end.output.size() - 1)));
    const auto late = run(shell("timeout 30 sh -c 'echo $$; sleep 30'"), 300ms);
    CHECK(late.end.how == How::timed_out);
    CHECK(gone(late.end.output.substr(0, late.end.output.size() - 1)));
}

TEST_CASE("a keeper that is killed takes the command with it") {
    const auto done = run(shell("sleep 30 & echo $!; kill -9 $PPID; sleep 30"));
    CHECK(done.end.how == How::signalled);
    CHECK(done.end.code == SIGKILL);
    CHECK(done.took < 15s);
    CHECK(gone(done.end.output.substr(0, done.end.output.size() - 1)));
}

TEST_CASE("a command that signals its own group or ignores its orphans is still reported") {
    const auto done = run(shell("trap '' TERM; kill -TERM 0; (true &); (true &); exit 9"));
    CHECK(done.end.how == How::exited);
    CHECK(done.end.code == 9);
}

TEST_CASE("a daemon that was frozen before the fork starts nothing late") {
    const auto child = tools::spawn(shell("echo started"), outbox::Deadline::after(-1ms));
    REQUIRE(child.error == 0);
    tools::KeeperReport report;
    do {
        REQUIRE(::read(child.control.get(), &report, sizeof report) == sizeof report);
    } while (report.kind == tools::KeeperReport::Kind::command);
    CHECK(report.kind == tools::KeeperReport::Kind::not_started);
    CHECK(report.value == ETIME);
    char byte = 0;
    CHECK(::read(child.output.get(), &byte, 1) == 0);
    ::shutdown(child.control.get(), SHUT_WR);
    CHECK(::waitpid(child.keeper, nullptr, 0) == child.keeper);
}

TEST_CASE("many runs leave no descriptor and no zombie") {
    const auto before = open_descriptors();
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) {
        tools::ProcessSpec spec;
        spec.argv = {i % 2 == 0 ? "/bin/true" : "/no/such/program"};
        CHECK(run(spec).end.how == (i % 2 == 0 ? How::exited : How::not_started));
    }
    CHECK(std::chrono::steady_clock::now() - began < 20s);
    CHECK(open_descriptors() == before);
    CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
    CHECK(errno == ECHILD);
}
