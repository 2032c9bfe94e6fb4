#include "outbox/shared_limit.hpp"

#include <algorithm>
#include <utility>

#include "outbox/tool.hpp"

namespace outbox {

struct SharedLimit::Part {
    std::function<void()> on_free;
    std::function<void()> on_turn;
    int used = 0;
    int reserved = 0;
    BootClock::time_point reserved_at{};
    std::uint64_t served = 0;  // when it last set some aside, in turns
    bool waits = false;

    // What nobody answers for falls back, once somebody else asks.
    [[nodiscard]] int held(BootClock::time_point now) const {
        return used + (now - reserved_at < kPatience ? reserved : 0);
    }
};

struct SharedLimit::State {
    Settings settings;
    std::optional<TokenBucket> rate;
    std::vector<std::shared_ptr<Part>> parts;
    std::uint64_t turns = 0;

    [[nodiscard]] int used() const {
        int sum = 0;
        for (const auto& part : parts) sum += part->used;
        return sum;
    }
    [[nodiscard]] int held(BootClock::time_point now) const {
        int sum = 0;
        for (const auto& part : parts) sum += part->held(now);
        return sum;
    }
    [[nodiscard]] bool alone() const { return parts.size() == 1; }

    // Of `pool` things that those in line and `part` divide: how many are its own.
    template <class InLine>
    [[nodiscard]] int divided(int pool, const Part& part, InLine in_line) const {
        int count = 1;
        int before = 0;
        for (const auto& other : parts) {
            if (other.get() == &part || !in_line(*other)) continue;
            ++count;
            if (other->served < part.served) ++before;
        }
        return pool / count + (before < pool % count ? 1 : 0);
    }

    // asking: who counts as in line, because he asks just now; or null.
    [[nodiscard]] int free(
        const Part& part, BootClock::time_point now, const Part* asking = nullptr
    ) const {
        int left = settings.slots - held(now);
        if (alone()) return std::max(left, 0);
        const auto waits = [&](const Part& other) { return other.waits || &other == asking; };
        int pool = part.used;
        for (const auto& other : parts) {
            if (other.get() == &part) continue;
            if (waits(*other)) pool += other->used;
            left -= std::max(settings.kept - other->held(now), 0);
        }
        if (left <= 0) return 0;
        pool += left;
        return std::clamp(divided(pool, part, waits) - part.used, 0, left);
    }

    // A token that somebody's full slots keep him from using is not kept for him.
    [[nodiscard]] int available(const Part& part, BootClock::time_point now) {
        const int slots = free(part, now);
        if (!rate || slots == 0) return slots;
        const int tokens = std::max(rate->available(now), 0);
        if (alone()) return std::min(slots, tokens);
        const auto could = [&](const Part& other) {
            return other.waits && free(other, now, &part) > 0;
        };
        return std::min(slots, divided(tokens, part, could));
    }

    void nudge(const Part& from, BootClock::time_point now) {
        if (alone()) return;
        for (const auto& other : parts) {
            if (other.get() != &from && other->waits && available(*other, now) > 0) {
                other->on_turn();
            }
        }
    }
};

SharedLimit::SharedLimit(Settings settings, BootClock::time_point now)
    : state_(std::make_shared<State>()) {
    if (settings.rate) state_->rate.emplace(*settings.rate, now);
    state_->settings = settings;
}

SharedLimit::Slot::Slot(std::shared_ptr<State> state, std::shared_ptr<Part> part)
    : state_(std::move(state)), part_(std::move(part)) {
    ++part_->used;
}

void SharedLimit::Slot::give_back() {
    if (!part_) return;
    const auto part = std::exchange(part_, nullptr);
    const auto state = std::exchange(state_, nullptr);
    --part->used;
    if (part->on_free) part->on_free();
    state->nudge(*part, BootClock::now());
}

SharedLimit::Share::Share(
    SharedLimit& limit, std::function<void()> on_free, std::function<void()> on_turn
)
    : state_(limit.state_), part_(std::make_shared<Part>()) {
    part_->on_free = std::move(on_free);
    part_->on_turn = std::move(on_turn);
    state_->parts.push_back(part_);
}

// What a call that did not end still holds counts for nobody any more: the process is about to end.
SharedLimit::Share::~Share() {
    part_->on_free = {};
    part_->on_turn = {};
    std::erase(state_->parts, part_);
}

int SharedLimit::Share::limit() const {
    return state_->settings.slots;
}

int SharedLimit::Share::used() const {
    return state_->used();
}

int SharedLimit::Share::taken(BootClock::time_point now) const {
    return state_->held(now);
}

int SharedLimit::Share::free(BootClock::time_point now) const {
    return state_->free(*part_, now);
}

int SharedLimit::Share::available(BootClock::time_point now) const {
    return state_->available(*part_, now);
}

std::chrono::nanoseconds SharedLimit::Share::token_wait() const {
    return state_->rate ? state_->rate->wait() : std::chrono::nanoseconds::zero();
}

std::chrono::nanoseconds SharedLimit::Share::fallback_wait(BootClock::time_point now) const {
    auto wait = std::chrono::nanoseconds::zero();
    for (const auto& other : state_->parts) {
        const auto left = other->reserved_at + kPatience - now;
        if (other == part_ || other->reserved == 0 || left.count() <= 0) continue;
        wait = wait.count() == 0 ? left : std::min<std::chrono::nanoseconds>(wait, left);
    }
    return wait;
}

void SharedLimit::Share::reserve(int count, BootClock::time_point now) {
    part_->reserved = count;
    part_->reserved_at = now;
    part_->served = ++state_->turns;
    part_->waits = false;
    if (state_->rate) state_->rate->take(count);
}

bool SharedLimit::Share::claim(BootClock::time_point now) {
    const bool kept = part_->reserved > 0 && now - part_->reserved_at < kPatience;
    if (part_->reserved > 0) --part_->reserved;
    return kept || state_->alone() || state_->held(now) < state_->settings.slots;
}

void SharedLimit::Share::settle(BootClock::time_point now) {
    if (part_->reserved == 0) return;
    if (state_->rate) state_->rate->take(-part_->reserved);
    part_->reserved = 0;
    state_->nudge(*part_, now);
}

void SharedLimit::Share::stand_in_line(bool waits) {
    part_->waits = waits;
}

void SharedLimit::Share::nudge(BootClock::time_point now) const {
    state_->nudge(*part_, now);
}

SharedLimit::Slot SharedLimit::Share::take() {
    return {state_, part_};
}

void SharedLimit::Share::spend_token() {
    if (state_->rate) state_->rate->take(1);
}

namespace {

// A quarter of all slots is divided among the outboxes as what nobody else may take. Of one tool
// none are: they may be few, and its calls are as long as its time-out says.
int kept_of(int concurrency, int outboxes) {
    return outboxes > 1 ? concurrency / (4 * outboxes) : 0;
}

}  // namespace

SharedLimits::SharedLimits(const Toolset& tools, int concurrency, int outboxes)
    : all_({.slots = concurrency, .kept = kept_of(concurrency, outboxes)}, BootClock::now()) {
    for (const auto& [name, entry] : tools.all()) {
        const int own = entry.policy.concurrency;
        const int slots = own > 0 ? std::min(own, concurrency) : concurrency;
        tools_.try_emplace(
            name,
            SharedLimit::Settings{.slots = slots, .rate = entry.policy.rate_per_second, .kept = 0},
            BootClock::now()
        );
    }
}

}  // namespace outbox
