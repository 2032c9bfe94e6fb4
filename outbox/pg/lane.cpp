#include "outbox/pg/lane.hpp"

#include <algorithm>

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;
// The first reconnect comes at once; a server that is down is asked every two seconds by each lane.
constexpr auto kFirstDelay = 50ms;
constexpr auto kLongestDelay = 2000ms;

}  // namespace

Lane::Lane(std::string dsn, SessionSettings settings, Observer* observer)
    : dsn_(std::move(dsn)), settings_(settings), observer_(observer) {}

Lane::~Lane() {
    pool_.join();
}

Session& Lane::session() {
    if (session_ && session_->is_open()) {
        return *session_;
    }
    session_.reset();
    if (std::chrono::steady_clock::now() < not_before_) {
        throw StoreError(
            StoreError::Kind::unavailable,
            "no connection to the database, waiting before the next try"
        );
    }
    try {
        session_ = std::make_unique<Session>(dsn_, settings_, observer_);
    } catch (const std::exception&) {
        delay_ = std::clamp<std::chrono::milliseconds>(delay_ * 2, kFirstDelay, kLongestDelay);
        not_before_ = std::chrono::steady_clock::now() + delay_;
        throw;
    }
    delay_ = 0ms;
    return *session_;
}

void Lane::drop_broken_session() {
    if (session_ && !session_->is_open()) {
        session_.reset();
    }
}

}  // namespace outbox::pg
