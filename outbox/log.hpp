#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace outbox {

enum class LogLevel { debug, info, warn, error };

struct LogField {
    std::string_view key;  // operation_id, tool, attempt, epoch, …
    std::string value;
};

// One line per event. Only loops and the daemon log; decisions, tools and the store return facts.
class Log {
 public:
    virtual ~Log() = default;
    virtual void write(
        LogLevel level, std::string_view message, std::initializer_list<LogField> fields
    ) = 0;

    void info(std::string_view m, std::initializer_list<LogField> f = {}) {
        write(LogLevel::info, m, f);
    }
    void warn(std::string_view m, std::initializer_list<LogField> f = {}) {
        write(LogLevel::warn, m, f);
    }
    void error(std::string_view m, std::initializer_list<LogField> f = {}) {
        write(LogLevel::error, m, f);
    }
    void debug(std::string_view m, std::initializer_list<LogField> f = {}) {
        write(LogLevel::debug, m, f);
    }
};

}  // namespace outbox
