#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace outboxd::mcp {

// Reads lines from a file descriptor until its end, an error, or stop(); blocks, so it has a
// thread.
class LineReader {
 public:
    struct Line {
        std::string text;
        bool too_long = false;  // longer than allowed: nothing of it is kept
    };

    LineReader(int fd, std::size_t max_line);
    ~LineReader();
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;

    // Returns at the end of the input. Lines without anything but blanks are left out.
    void run(const std::function<void(Line)>& on_line);
    // From any thread: run() returns soon.
    void stop();

 private:
    [[nodiscard]] bool wait();
    void take(std::string_view bytes, const std::function<void(Line)>& on_line);
    void end_line(const std::function<void(Line)>& on_line);

    int fd_;
    std::size_t max_line_;
    int event_;  // eventfd
    Line line_;
};

// Writes all of it; false: nobody reads any more. Blocks while the reader is slow, but once
// `ending` is set (from any thread) no longer than `patience` without a byte taken.
[[nodiscard]] bool write_all(
    int fd,
    std::string_view bytes,
    const std::atomic<bool>& ending,
    std::chrono::milliseconds patience
);

}  // namespace outboxd::mcp
