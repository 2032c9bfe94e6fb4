#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tools {

// Reads server-sent events out of a text that comes piece by piece. Pure; lines end in LF, CR or
// CR LF, comments are skipped, and an event that the stream's end cuts off is none.
class EventStream {
 public:
    struct Event {
        std::string type;  // empty: message
        std::string data;
    };

    // max_bytes: of one event.
    explicit EventStream(std::size_t max_bytes) : max_bytes_(max_bytes) {}

    // Takes the whole lines out of the text and returns the events that ended with them.
    [[nodiscard]] std::vector<Event> take(std::string& text);
    // What follows is another stream, which goes on behind the last event of this one.
    void begin_again();
    // An event was longer than allowed: nothing of it is kept.
    [[nodiscard]] bool too_long() const { return too_long_; }
    // The last `id:` of an event, and the `retry:` of the stream: for asking on after it broke.
    [[nodiscard]] const std::string& last_id() const { return last_id_; }
    [[nodiscard]] std::optional<std::chrono::milliseconds> retry() const { return retry_; }

 private:
    void line(std::string_view line, std::vector<Event>& events);
    void field(std::string_view name, std::string_view value);

    std::size_t max_bytes_;
    Event event_;
    bool has_data_ = false;
    bool too_long_ = false;
    bool begun_ = false;         // the byte order mark, if any, is behind us
    bool after_return_ = false;  // the last line ended in CR: an LF that follows belongs to it
    std::string id_;             // of the event being read
    std::string last_id_;
    std::optional<std::chrono::milliseconds> retry_;
};

}  // namespace tools
