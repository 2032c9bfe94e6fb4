#pragma once

#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "outboxd/receipt.hpp"

namespace outboxd {

// The parameters of enqueue. The id is operation_id, or derived from tool, arguments and run_id.
struct Request {
    std::string tool;
    std::string arguments = "{}";  // JSON text of an object
    std::optional<std::string> operation_id{};
    std::optional<std::string> run_id{};
    int occurrence = 1;  // 2 for a second intended identical call in one run
    int priority = 0;    // −100 (first) to 100
    std::optional<Time> run_at{};
    std::optional<Time> expires_at{};
    std::optional<int> max_attempts{};
    std::optional<std::string> traceparent{};
    std::map<std::string, std::string> labels{};
    bool retry_failed = false;  // if it is recorded as failed (no effect), arm it again
};

namespace detail {

inline std::string json_text(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            quoted += escape;
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

inline std::string json_labels(const std::map<std::string, std::string>& labels) {
    std::string object;
    for (const auto& [name, value] : labels) {
        object += (object.empty() ? "" : ",") + json_text(name) + ":" + json_text(value);
    }
    return "{" + object + "}";
}

inline std::string iso_time(Time time) {
    using std::chrono::system_clock;
    const auto whole = std::chrono::floor<std::chrono::seconds>(time);
    const std::time_t clock =
        system_clock::to_time_t(std::chrono::time_point_cast<system_clock::duration>(whole));
    std::tm parts{};
    gmtime_r(&clock, &parts);
    char text[64];
    const auto length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    std::snprintf(
        text + length, sizeof text - length, ".%06dZ", static_cast<int>((time - whole).count())
    );
    return text;
}

// One item of enqueue_many. The arguments go in as a text, and the statement makes JSON of it: put
// in as they are, `{}, "tool": "other"` would be members of the item.
inline std::string json_item(const Request& request) {
    std::string item =
        "{\"tool\":" + json_text(request.tool) + ",\"arguments\":" + json_text(request.arguments);
    const auto add = [&item](const char* name, const std::optional<std::string>& value) {
        if (value) {
            item += std::string{",\""} + name + "\":" + *value;
        }
    };
    const auto quoted = [](const std::optional<std::string>& value) {
        return value ? std::optional<std::string>(json_text(*value)) : std::nullopt;
    };
    const auto timed = [](const std::optional<Time>& value) {
        return value ? std::optional<std::string>(json_text(iso_time(*value))) : std::nullopt;
    };
    add("operation_id", quoted(request.operation_id));
    add("run_id", quoted(request.run_id));
    add("occurrence", std::to_string(request.occurrence));
    add("priority", std::to_string(request.priority));
    add("run_at", timed(request.run_at));
    add("expires_at", timed(request.expires_at));
    if (request.max_attempts) {
        add("max_attempts", std::to_string(*request.max_attempts));
    }
    add("traceparent", quoted(request.traceparent));
    if (!request.labels.empty()) {
        add("labels", json_labels(request.labels));
    }
    add("retry_failed", request.retry_failed ? "true" : "false");
    return item + "}";
}

}  // namespace detail
}  // namespace outboxd
