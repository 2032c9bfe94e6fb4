#include "daemon/process.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/embedded_postgres.hpp"
#include "tests/support/catch.hpp"

using namespace outboxd;
using namespace std::chrono_literals;

namespace {

Process shell(const std::string& script, std::optional<std::string> output = std::nullopt) {
    return Process(
        {.argv = {"/bin/sh", "-c", script},
         .env = {{"GIVEN", "a b"}},
         .output = std::move(output),
         .user = std::nullopt,
         .death_signal = SIGKILL}
    );
}

std::string content(const std::string& file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("a process tells how it ended") {
    CHECK(shell("exit 7").wait().code == 7);
    CHECK(shell("kill -9 $$").wait().signal == SIGKILL);
}

TEST_CASE("a program that is not there is an exception, not an exit code") {
    CHECK_THROWS_WITH(
        run_process(
            {.argv = {"/nonexistent/program"},
             .env = {},
             .output = std::nullopt,
             .user = std::nullopt,
             .death_signal = SIGTERM}
        ),
        ContainsSubstring("/nonexistent/program")
    );
}

TEST_CASE("stop kills what does not listen") {
    Process deaf = shell("trap '' TERM; while :; do sleep 0.05; done");
    CHECK_FALSE(deaf.wait_for(100ms));
    CHECK(deaf.stop(SIGTERM, 100ms).signal == SIGKILL);
    CHECK(deaf.poll().has_value());
}

TEST_CASE("a child gets the given variables and none of systemd's") {
    const std::string file =
        std::filesystem::temp_directory_path() / ("outboxd-process-" + std::to_string(getpid()));
    setenv("NOTIFY_SOCKET", "/run/nobody", 1);
    CHECK(shell("echo \"$GIVEN\"; echo \"${NOTIFY_SOCKET-none}\"", file).wait().code == 0);
    unsetenv("NOTIFY_SOCKET");
    CHECK(content(file) == "a b\nnone\n");
    std::filesystem::remove(file);
}

TEST_CASE("values of a DSN are quoted when they must be") {
    CHECK(dsn_value("/tmp/x") == "/tmp/x");
    CHECK(dsn_value("/tmp/a b") == "'/tmp/a b'");
    CHECK(dsn_value("it's\\") == "'it\\'s\\\\'");
    CHECK(dsn_value("") == "''");
}
