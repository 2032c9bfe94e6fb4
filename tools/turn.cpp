#include "tools/turn.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "tools/running_command.hpp"

namespace tools {
namespace {

// The boot clock goes on while the machine sleeps, timers do not.
constexpr std::chrono::nanoseconds kTick = std::chrono::seconds{1};

}  // namespace

Turn::Held::~Held() {
    if (turn_ == nullptr) return;
    turn_->taken_ = false;
    if (!turn_->waiting_.empty()) turn_->waiting_.front()->cancel();
}

Turn::Held::Held(Held&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}

asio::awaitable<Turn::Held> Turn::take(Turn& turn, outbox::Deadline deadline) {
    if (turn.taken_) {
        const auto executor = co_await asio::this_coro::executor;
        asio::steady_timer timer(executor);
        // Also when this coroutine is destroyed where it waits.
        struct Place {
            std::list<asio::steady_timer*>& list;
            std::list<asio::steady_timer*>::iterator at;
            ~Place() { list.erase(at); }
        };
        const Place place{turn.waiting_, turn.waiting_.insert(turn.waiting_.end(), &timer)};
        while (turn.taken_) {
            auto asking = is_cancelled();
            const bool cancelled = co_await std::move(asking);
            if (cancelled || deadline.passed()) co_return Held(nullptr);
            timer.expires_after(std::clamp(deadline.left(), std::chrono::nanoseconds{0}, kTick));
            auto waiting = timer.async_wait(asio::as_tuple(asio::use_awaitable));
            co_await std::move(waiting);
        }
    }
    turn.taken_ = true;
    co_return Held(&turn);
}

}  // namespace tools
