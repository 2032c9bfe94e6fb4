#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "outbox/log.hpp"

namespace outboxd {

enum class LogFormat { json, text };

struct LogLine {
    std::chrono::system_clock::time_point time;
    outbox::LogLevel level;
    std::string_view message;
    std::string_view source{};  // whose database it is about; empty: there is one alone, or none
};

// One line without its end. Whatever a value holds, it can neither start a new line nor leave its
// quotes nor reach the terminal as a control sequence.
[[nodiscard]] std::string format_line(
    LogFormat format, const LogLine& line, std::initializer_list<outbox::LogField> fields
);

[[nodiscard]] std::optional<outbox::LogLevel> parse_log_level(std::string_view text);

// Structured lines to a file descriptor (stderr). Each line is one write(2), so lines of several
// threads never mix. Under journald lines carry the <N> prefix that gives them their priority.
class StderrLog : public outbox::Log {
 public:
    StderrLog(LogFormat format, outbox::LogLevel level, int descriptor = 2);

    void write(
        outbox::LogLevel level,
        std::string_view message,
        std::initializer_list<outbox::LogField> fields
    ) override;

    // Of one of several sources.
    void write_of(
        std::string_view source,
        outbox::LogLevel level,
        std::string_view message,
        std::initializer_list<outbox::LogField> fields
    );

    void set_level(outbox::LogLevel level) { level_.store(level); }

 private:
    const LogFormat format_;
    std::atomic<outbox::LogLevel> level_;
    const int descriptor_;
    const bool journal_;
};

// Names the source in every line.
class SourceLog : public outbox::Log {
 public:
    // source: empty where there is one alone.
    SourceLog(StderrLog& log, std::string source) : log_(log), source_(std::move(source)) {}

    void write(
        outbox::LogLevel level,
        std::string_view message,
        std::initializer_list<outbox::LogField> fields
    ) override {
        log_.write_of(source_, level, message, fields);
    }

 private:
    StderrLog& log_;
    std::string source_;
};

}  // namespace outboxd
