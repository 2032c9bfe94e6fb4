#include "tools/lane_signal.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "tools/http_tool.hpp"
#include "tools/retry_after.hpp"

namespace tools {
namespace {

// A 429 that does not say how long.
constexpr std::chrono::milliseconds kUnsaid{1'000};

bool is_any(std::string_view code, const auto& codes) {
    return std::find(codes.begin(), codes.end(), code) != codes.end();
}

LaneSignal::Health health_of(const HttpFailure& failure) {
    constexpr std::array<std::string_view, 4> kUnreached = {
        "not_sent_dns", "not_sent_connect", "not_sent_tls", "not_sent_proxy"
    };
    constexpr std::array<std::string_view, 2> kLost = {"timeout", "reset"};
    using Health = LaneSignal::Health;
    if (failure.sent) return is_any(failure.error.code, kLost) ? Health::down : Health::unknown;
    return is_any(failure.error.code, kUnreached) ? Health::unreached : Health::unknown;
}

}  // namespace

LaneSignal lane_signal(const HttpResult& result) {
    if (const auto* failure = std::get_if<HttpFailure>(&result)) {
        return {.health = health_of(*failure), .status = 0, .pause = std::nullopt};
    }
    const auto& response = std::get<HttpResponse>(result);
    LaneSignal signal;
    signal.status = response.status;
    signal.health = response.status >= 500 ? LaneSignal::Health::down : LaneSignal::Health::up;
    if (response.status != 429 && response.status != 503) return signal;
    Answer headers;
    headers.headers = response.headers;
    signal.pause =
        RetryAfter::header("Retry-After").read(headers, std::chrono::system_clock::now());
    // It is there, and says when: no reason to guess.
    if (signal.pause) signal.health = LaneSignal::Health::up;
    return signal;
}

LaneSignal with_outcome(LaneSignal signal, const outbox::Outcome& outcome) {
    const auto* later = std::get_if<outbox::RetryLater>(&outcome);
    if (later == nullptr) return signal;
    // 409 and 425 are about this one operation: it is being worked on.
    const bool of_operation = signal.status == 409 || signal.status == 425;
    const bool of_all = (later->asked && !of_operation) || signal.status == 429;
    if (of_all && later->after && signal.status > 0) {
        signal.pause = std::max(signal.pause.value_or(*later->after), *later->after);
    }
    if (signal.status == 429 && !signal.pause) signal.pause = kUnsaid;
    return signal;
}

LaneSignal of_lookup(LaneSignal signal) {
    if (signal.status == 429 && !signal.pause) signal.pause = kUnsaid;
    return signal;
}

}  // namespace tools
