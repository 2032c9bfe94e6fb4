#include "tests/sim/sim_time.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "outbox/bell.hpp"

namespace sim {
namespace {

// A bell's wait ends when its time has come; a wait that is destroyed (a crash) is forgotten.
class Limit {
 public:
    Limit(std::chrono::nanoseconds limit, boost::asio::steady_timer& timer) {
        timer.expires_at(std::chrono::steady_clock::time_point::max());
        if (limit >= outbox::Bell::kForever) return;
        key_ = Time::instance().plan(limit, [&timer] { timer.cancel(); });
    }
    ~Limit() {
        if (key_) Time::instance().forget(*key_);
    }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

 private:
    std::optional<Time::Key> key_;
};

}  // namespace

Time& Time::instance() {
    static Time time;
    return time;
}

void Time::reset() {
    planned_.clear();
    now_ = Point(std::chrono::hours(1));
    order_ = 0;
}

Time::Key Time::plan(std::chrono::nanoseconds from_now, std::function<void()> what) {
    const Key key(now_ + std::max(from_now, std::chrono::nanoseconds::zero()), ++order_);
    planned_.emplace(key, std::move(what));
    return key;
}

bool Time::step() {
    const auto next = planned_.begin();
    if (next == planned_.end()) return false;
    now_ = next->first.first;
    const auto what = std::move(next->second);
    planned_.erase(next);
    what();
    return true;
}

}  // namespace sim

// Instead of outbox/clock.cpp and outbox/bell.cpp.
namespace outbox {

BootClock::time_point BootClock::now() {
    return sim::Time::instance().now();
}

void Bell::ring() {
    rung_ = true;
    timer_.cancel();
}

asio::awaitable<bool> Bell::wait(std::chrono::nanoseconds limit) {
    if (!rung_) {
        sim::Limit until(limit, timer_);
        co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    co_return std::exchange(rung_, false);
}

}  // namespace outbox
