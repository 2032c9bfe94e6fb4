#include "daemon/log.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

using namespace outboxd;
using outbox::LogLevel;

namespace {

const std::chrono::system_clock::time_point kTime{std::chrono::milliseconds{1'700'000'000'042}};

std::string line(LogFormat format, std::string_view message, std::string value) {
    return format_line(format, {kTime, LogLevel::warn, message}, {{"key", std::move(value)}});
}

std::string read_all(int descriptor) {
    std::string text;
    char buffer[4096];
    for (ssize_t n = 0; (n = read(descriptor, buffer, sizeof buffer)) > 0;) {
        text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
}

}  // namespace

TEST_CASE("a JSON line has time, level, message and the fields in order") {
    CHECK(
        line(LogFormat::json, "went \"wrong\"", "a\nb") ==
        R"({"time":"2023-11-14T22:13:20.042Z","level":"warn","message":"went \"wrong\"","key":"a\nb"})"
    );
}

TEST_CASE("a text line quotes what is no single word") {
    CHECK(line(LogFormat::text, "m", "word") == "2023-11-14T22:13:20.042Z warn  m key=word");
    CHECK(
        line(LogFormat::text, "m", "two words") ==
        "2023-11-14T22:13:20.042Z warn  m key=\"two words\""
    );
    CHECK(line(LogFormat::text, "m", "").ends_with("key=\"\""));
    CHECK(line(LogFormat::text, "m", "say \"x\"").ends_with("key=\"say \\\"x\\\"\""));
}

TEST_CASE("no value starts a line or reaches the terminal as a control sequence") {
    for (const auto format : {LogFormat::json, LogFormat::text}) {
        const std::string text = line(format, "evil\nmessage\x1b[2J", "x\r\n2023 error forged");
        CHECK(text.find_first_of("\n\r\x1b") == std::string::npos);
    }
}

TEST_CASE("levels have names") {
    CHECK(parse_log_level("debug") == LogLevel::debug);
    CHECK(parse_log_level("error") == LogLevel::error);
    CHECK_FALSE(parse_log_level("verbose"));
}

TEST_CASE("lines below the level are dropped, and lines of two threads never mix") {
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    StderrLog log(LogFormat::json, LogLevel::info, pipe_ends[1]);
    log.debug("unheard");
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&log] {
            for (int n = 0; n < 100; ++n) log.info("heard", {{"n", std::to_string(n)}});
        });
    }
    for (auto& thread : threads) thread.join();
    close(pipe_ends[1]);
    const std::string text = read_all(pipe_ends[0]);
    close(pipe_ends[0]);
    CHECK(text.find("unheard") == std::string::npos);
    std::size_t lines = 0;
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1) {
        const std::string one = text.substr(at, end - at);
        CHECK(one.starts_with("{\"time\""));
        CHECK(one.ends_with("}"));
        ++lines;
    }
    CHECK(lines == 200);
}

// As systemd does: JOURNAL_STREAM names the device and inode of the stream it gave.
TEST_CASE("lines to the journal begin with their priority, lines to anything else do not") {
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    struct stat status{};
    REQUIRE(fstat(pipe_ends[1], &status) == 0);
    const auto journal = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
    setenv("JOURNAL_STREAM", journal.c_str(), 1);
    StderrLog to_journal(LogFormat::json, LogLevel::debug, pipe_ends[1]);
    setenv("JOURNAL_STREAM", "1:1", 1);
    StderrLog to_file(LogFormat::json, LogLevel::debug, pipe_ends[1]);
    unsetenv("JOURNAL_STREAM");
    to_journal.debug("a");
    to_journal.info("b");
    to_journal.warn("c");
    to_journal.error("d\n<0>forged");
    to_file.error("e");
    close(pipe_ends[1]);
    std::istringstream text(read_all(pipe_ends[0]));
    close(pipe_ends[0]);
    for (const char* start : {"<7>{", "<6>{", "<4>{", "<3>{", "{"}) {
        std::string one;
        REQUIRE(std::getline(text, one));
        CHECK(one.starts_with(start));
    }
    std::string more;
    CHECK_FALSE(std::getline(text, more));
}

TEST_CASE("of one of several sources, a line says of which") {
    const outboxd::LogLine of_one{kTime, LogLevel::warn, "gone", "two words"};
    CHECK_THAT(
        format_line(LogFormat::text, of_one, {{"key", "v"}}),
        ContainsSubstring("gone source=\"two words\" key=v")
    );
    CHECK_THAT(
        format_line(LogFormat::json, of_one, {{"key", "v"}}),
        ContainsSubstring(R"("message":"gone","source":"two words","key":"v"})")
    );
}
