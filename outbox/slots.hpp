#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace outbox {

// A counting limit. Whoever leases counts what is free first, so nobody waits here: leased means
// started. Used on the io thread. A slot may outlive its limit (a coroutine that was cut off at
// exit): then giving it back does nothing.
class Slots {
 public:
    explicit Slots(int limit, std::function<void()> on_free = {})
        : limit_(limit), state_(std::make_shared<State>(State{0, std::move(on_free)})) {}
    ~Slots() { state_->on_free = {}; }
    Slots(const Slots&) = delete;
    Slots& operator=(const Slots&) = delete;

    [[nodiscard]] int limit() const { return limit_; }
    [[nodiscard]] int used() const { return state_->used; }
    [[nodiscard]] int free() const { return limit_ - used(); }

 private:
    struct State {
        int used;
        std::function<void()> on_free;
    };

 public:
    // One taken slot, given back when it goes out of scope.
    class Slot {
     public:
        explicit Slot(std::shared_ptr<State> state) : state_(std::move(state)) { ++state_->used; }
        Slot(Slot&&) noexcept = default;
        Slot& operator=(Slot&&) = delete;
        ~Slot() { give_back(); }
        void give_back() {
            if (!state_) return;
            const auto state = std::exchange(state_, nullptr);
            --state->used;
            if (state->on_free) state->on_free();
        }

     private:
        std::shared_ptr<State> state_;
    };
    [[nodiscard]] Slot take() { return Slot(state_); }

 private:
    int limit_;
    std::shared_ptr<State> state_;
};

}  // namespace outbox
