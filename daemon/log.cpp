#include "daemon/log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "daemon/text.hpp"

namespace outboxd {
namespace {

std::string_view level_name(outbox::LogLevel level) {
    switch (level) {
        case outbox::LogLevel::debug:
            return "debug";
        case outbox::LogLevel::info:
            return "info";
        case outbox::LogLevel::warn:
            return "warn";
        case outbox::LogLevel::error:
            return "error";
    }
    return "error";
}

// syslog's priorities, as sd-daemon(3) reads them at the start of a line.
std::string_view journal_prefix(outbox::LogLevel level) {
    switch (level) {
        case outbox::LogLevel::debug:
            return "<7>";
        case outbox::LogLevel::info:
            return "<6>";
        case outbox::LogLevel::warn:
            return "<4>";
        case outbox::LogLevel::error:
            return "<3>";
    }
    return "<3>";
}

std::string utc(std::chrono::system_clock::time_point time) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(time);
    const auto part = std::chrono::duration_cast<std::chrono::milliseconds>(time - whole).count();
    const auto seconds = std::chrono::system_clock::to_time_t(whole);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), part);
}

// A value for people: quoted when it would not stand as one word.
std::string text_value(std::string_view value) {
    std::string plain = printable(value);
    if (!plain.empty() && plain.find_first_of(" \"=\\") == std::string::npos) return plain;
    std::string out = "\"";
    for (const char c : plain) {
        if (c == '"') out += '\\';
        out += c;
    }
    return out += '"';
}

// True when the descriptor is the stream that journald gave to this service.
bool is_journal(int descriptor) {
    const char* stream = std::getenv("JOURNAL_STREAM");
    struct stat status{};
    if (stream == nullptr || fstat(descriptor, &status) != 0) return false;
    return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

}  // namespace

std::string format_line(
    LogFormat format, const LogLine& line, std::initializer_list<outbox::LogField> fields
) {
    const std::string_view level = level_name(line.level);
    if (format == LogFormat::text) {
        std::string out = fmt::format("{} {:5} {}", utc(line.time), level, printable(line.message));
        if (!line.source.empty()) out += fmt::format(" source={}", text_value(line.source));
        for (const auto& field : fields) {
            out += fmt::format(" {}={}", field.key, text_value(field.value));
        }
        return out;
    }
    std::string out = fmt::format(
        R"({{"time":"{}","level":"{}","message":{})",
        utc(line.time),
        level,
        json_quoted(line.message)
    );
    if (!line.source.empty()) out += fmt::format(R"(,"source":{})", json_quoted(line.source));
    for (const auto& field : fields) {
        out += fmt::format(",{}:{}", json_quoted(field.key), json_quoted(field.value));
    }
    return out += '}';
}

std::optional<outbox::LogLevel> parse_log_level(std::string_view text) {
    using outbox::LogLevel;
    for (const auto level : {LogLevel::debug, LogLevel::info, LogLevel::warn, LogLevel::error}) {
        if (text == level_name(level)) return level;
    }
    return std::nullopt;
}

StderrLog::StderrLog(LogFormat format, outbox::LogLevel level, int descriptor)
    : format_(format), level_(level), descriptor_(descriptor), journal_(is_journal(descriptor)) {}

void StderrLog::write(
    outbox::LogLevel level, std::string_view message, std::initializer_list<outbox::LogField> fields
) {
    write_of({}, level, message, fields);
}

void StderrLog::write_of(
    std::string_view source,
    outbox::LogLevel level,
    std::string_view message,
    std::initializer_list<outbox::LogField> fields
) {
    if (level < level_.load()) return;
    std::string text;
    if (journal_) text = journal_prefix(level);
    text +=
        format_line(format_, {std::chrono::system_clock::now(), level, message, source}, fields);
    text += '\n';
    // A log that cannot be written must not stop the work; there is nowhere left to complain.
    [[maybe_unused]] const auto written = ::write(descriptor_, text.data(), text.size());
}

}  // namespace outboxd
