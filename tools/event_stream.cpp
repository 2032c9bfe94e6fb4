#include "tools/event_stream.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace tools {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kLongestId = 1024;

}  // namespace

std::vector<EventStream::Event> EventStream::take(std::string& text) {
    std::vector<Event> events;
    std::string_view rest = text;
    if (!begun_) {
        // Not known before three bytes are there whether they are the mark.
        const auto head = rest.substr(0, kByteOrderMark.size());
        if (head.size() < kByteOrderMark.size() && kByteOrderMark.starts_with(head)) return events;
        if (head == kByteOrderMark) rest.remove_prefix(head.size());
        begun_ = true;
    }
    while (!rest.empty()) {
        if (after_return_ && rest.front() == '\n') rest.remove_prefix(1);
        after_return_ = false;
        const auto end = rest.find_first_of("\r\n");
        if (end == std::string_view::npos) break;
        after_return_ = rest[end] == '\r';
        line(rest.substr(0, end), events);
        rest.remove_prefix(end + 1);
    }
    text.erase(0, text.size() - rest.size());
    return events;
}

void EventStream::begin_again() {
    event_ = {};
    has_data_ = false;
    begun_ = false;
    after_return_ = false;
    id_ = last_id_;
}

void EventStream::line(std::string_view line, std::vector<Event>& events) {
    if (line.empty()) {
        last_id_ = id_;
        if (has_data_ && !too_long_) events.push_back(std::exchange(event_, {}));
        event_ = {};
        has_data_ = false;
        return;
    }
    const auto colon = line.find(':');
    if (colon == 0) return;  // a comment, which keeps the connection alive
    auto value = colon == std::string_view::npos ? std::string_view{} : line.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    field(line.substr(0, colon), value);
}

void EventStream::field(std::string_view name, std::string_view value) {
    if (name == "data") {
        if (event_.data.size() + value.size() + 1 > max_bytes_) {
            too_long_ = true;
            event_ = {};
            return;
        }
        if (has_data_) event_.data += '\n';
        event_.data += value;
        has_data_ = true;
    } else if (name == "event") {
        event_.type = value.substr(0, kLongestId);
    } else if (name == "id") {
        if (value.find('\0') == std::string_view::npos && value.size() <= kLongestId) id_ = value;
    } else if (name == "retry") {
        int number = 0;
        const auto* end = value.data() + value.size();
        const auto parsed = std::from_chars(value.data(), end, number);
        if (parsed.ec == std::errc{} && parsed.ptr == end && number >= 0) {
            retry_ = std::chrono::milliseconds(number);
        }
    }
}

}  // namespace tools
