#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/clock.hpp"
#include "outbox/token_bucket.hpp"

namespace outbox {

class Toolset;

// A limit on calls under way that the outboxes of one process share: those of one tool (the other
// side does not care whose they are), or all of them. Each outbox takes part with a Share.
// Whoever wants more than there is gets as much as the others that want more; what does not divide
// goes to the one that was served longest ago. Nobody is interrupted: a turn comes with a call's
// end or a token. An outbox whose database does not answer holds nothing for long: its calls end
// with their deadlines, and what it set aside for a lease falls back.
// Pure but for the callbacks: time is handed in. Used on the io thread.
class SharedLimit {
    struct Part;
    struct State;

 public:
    // For how long a lease without an answer keeps others waiting.
    static constexpr std::chrono::milliseconds kPatience{200};

    struct Settings {
        int slots = 1;
        std::optional<double> rate{};  // of starts, a second
        // Slots that each outbox finds free however busy the others are.
        int kept = 0;
    };
    SharedLimit(Settings settings, BootClock::time_point now);
    SharedLimit(const SharedLimit&) = delete;
    SharedLimit& operator=(const SharedLimit&) = delete;

    // One taken slot, given back when it goes out of scope. It may outlive everything else.
    class Slot {
     public:
        Slot(std::shared_ptr<State> state, std::shared_ptr<Part> part);
        Slot(Slot&&) noexcept = default;
        Slot& operator=(Slot&&) = delete;
        ~Slot() { give_back(); }
        void give_back();

     private:
        std::shared_ptr<State> state_;
        std::shared_ptr<Part> part_;
    };

    class Share {
     public:
        // on_free: one of its own slots was given back. on_turn: it waits, and may take some.
        Share(SharedLimit& limit, std::function<void()> on_free, std::function<void()> on_turn);
        ~Share();
        Share(const Share&) = delete;
        Share& operator=(const Share&) = delete;

        [[nodiscard]] int limit() const;
        // Slots taken, by all; with those that are set aside.
        [[nodiscard]] int used() const;
        [[nodiscard]] int taken(BootClock::time_point now) const;
        // Slots that this one may take now; the same where a start takes a token, too.
        [[nodiscard]] int free(BootClock::time_point now) const;
        [[nodiscard]] int available(BootClock::time_point now) const;
        // Until there is a token, whosever; zero: there is, or none is needed.
        [[nodiscard]] std::chrono::nanoseconds token_wait() const;
        // Until the first of what others set aside falls back. Nobody tells of that: who stands in
        // line looks again by himself. Zero: nobody set anything aside that is not his any more.
        [[nodiscard]] std::chrono::nanoseconds fallback_wait(BootClock::time_point now) const;

        // Sets some aside (tokens too) for a lease that is about to be sent.
        void reserve(int count, BootClock::time_point now);
        // For one row of its answer: false when what was set aside fell back and is gone.
        [[nodiscard]] bool claim(BootClock::time_point now);
        // The lease is over: what was not claimed falls back.
        void settle(BootClock::time_point now);
        // Whether it stands in line for more than it may take: it acts when on_turn is called.
        void stand_in_line(bool waits);
        // Tells the others that stand in line and may take some.
        void nudge(BootClock::time_point now) const;
        // Takes one, free or not.
        [[nodiscard]] Slot take();
        void spend_token();

     private:
        std::shared_ptr<State> state_;
        std::shared_ptr<Part> part_;
    };

 private:
    std::shared_ptr<State> state_;
};

// The limits of one configuration: of every tool, and of all of them together.
class SharedLimits {
 public:
    // outboxes: how many will share them.
    SharedLimits(const Toolset& tools, int concurrency, int outboxes);

    [[nodiscard]] SharedLimit& all() { return all_; }
    [[nodiscard]] SharedLimit& of(const std::string& tool) { return tools_.at(tool); }

 private:
    SharedLimit all_;
    std::map<std::string, SharedLimit> tools_;
};

}  // namespace outbox
