#include "outbox/leaser.hpp"

#include <algorithm>
#include <utility>

namespace outbox {
namespace {

// Without work for this long, the idle poll takes over.
constexpr std::chrono::milliseconds kBusyFor{100};

// A mark trails by once to twice this. Planners' transactions are short; a longer one is found by
// the sweep. Each look passes the dead entries of the rows that were taken meanwhile.
constexpr std::chrono::milliseconds kTrail{25};

// How many attempts may have ended and wait for their record, besides those whose calls are under
// way: so that the next lease does not wait for the last one's record, nor the record for it. As
// many again as there are calls; where those are few, what a record's round trip lets pass.
int unrecorded(int concurrency) {
    constexpr int kEnough = 512;
    return std::max(concurrency, std::min(4 * concurrency, kEnough));
}

// The most that one lease asks for. Half of the calls: the other half is leased while these start.
// Where there are few calls, a lease would cost more than it brings.
int most_at_once(int concurrency) {
    constexpr int kFew = 64;
    return std::max(concurrency / 2, kFew);
}

std::pair<std::int16_t, std::int64_t> order(const LeaseMark& mark) {
    return {mark.priority, mark.seq};
}

LeaseMark earlier(const LeaseMark& a, const LeaseMark& b) {
    return order(a) < order(b) ? a : b;
}

LeaseMark later(const LeaseMark& a, const LeaseMark& b) {
    return order(a) < order(b) ? b : a;
}

}  // namespace

Leaser::Lane::Lane(const ToolEntry& e, SharedLimit& limit, Leaser& owner)
    : entry(&e),
      slots(limit, [this, &owner] { owner.on_free(*this); }, [&owner] { owner.bell_.ring(); }) {}

Leaser::Leaser(
    asio::any_io_executor executor,
    Store& store,
    const Toolset& tools,
    Executor& attempts,
    Observer& observer,
    Log& log,
    Failpoints& failpoints,
    Random& random,
    Settings settings
)
    : store_(store),
      attempts_(attempts),
      observer_(observer),
      log_(log),
      failpoints_(failpoints),
      random_(random),
      settings_(std::move(settings)),
      bell_(std::move(executor)),
      slots_(
          settings_.concurrency + unrecorded(settings_.concurrency),
          [this] {
              if (hungry()) bell_.ring();
          }
      ),
      limits_(
          settings_.limits ? settings_.limits
                           : std::make_shared<SharedLimits>(tools, settings_.concurrency, 1)
      ),
      calls_(
          limits_->all(),
          [this] {
              if (hungry()) bell_.ring();
          },
          [this] { bell_.ring(); }
      ),
      last_work_(BootClock::now()) {
    for (const auto& [name, entry] : tools.all()) {
        lanes_.push_back(std::make_unique<Lane>(entry, limits_->of(name), *this));
        by_tool_.emplace(name, lanes_.back().get());
        const auto& slots = lanes_.back()->slots;
        observer_.slots(name, slots.used(), slots.limit());
    }
}

asio::awaitable<void> Leaser::run() {
    while (!stopping_) {
        if (lost_) {
            co_await bell_.wait(backoff_.next());
            auto releasing = release_lost();
            co_await std::move(releasing);
            continue;
        }
        auto asked = request();
        if (asked.lanes.empty()) {
            pulse_.succeeded();  // nothing to ask for is no failure
        } else {
            auto leasing = lease_once(std::move(asked));
            co_await std::move(leasing);
        }
        if (stopping_ || lost_) continue;
        auto pausing = pause();
        co_await std::move(pausing);
    }
    leave_line();
    if (lost_) {
        auto releasing = release_lost();
        co_await std::move(releasing);
    }
}

void Leaser::stop() {
    stopping_ = true;
    bell_.ring();
}

void Leaser::wake() {
    for (auto& lane : lanes_) lane->sweep = true;
    bell_.ring();
}

std::chrono::nanoseconds Leaser::idle_for() const {
    return BootClock::now() - last_work_;
}

// Every lane may ask for a little; what is left goes to those that had more rows than slots.
LeaseRequest Leaser::request() {
    const auto now = BootClock::now();
    LeaseRequest request{.worker = settings_.worker, .margin = settings_.margin, .lanes = {}};
    int free = std::min({slots_.free(), calls_.free(now), most_at_once(settings_.concurrency)});
    const auto count = lanes_.size();
    for (auto& lane : lanes_) lane->asked = false;
    if (free <= 0 || count == 0) return request;
    const int share = std::max(1, free / static_cast<int>(2 * count));
    std::vector<std::pair<Lane*, int>> limits;
    for (std::size_t i = 0; i < count && free > 0; ++i) {
        auto& lane = *lanes_[(turn_ + i) % count];
        const int limit = std::min({wanted(lane, now), share, free});
        free -= limit;
        if (limit > 0) limits.emplace_back(&lane, limit);
    }
    ++turn_;
    for (const bool full : {true, false}) {
        for (auto& [lane, limit] : limits) {
            if (lane->full != full) continue;
            const int more = std::min(wanted(*lane, now) - limit, free);
            limit += more;
            free -= more;
        }
    }
    for (const auto& [lane, limit] : limits) {
        // Rows that became ready behind the mark (a late commit, a smaller priority) are found by
        // looking from the start now and then.
        if (now - lane->swept >= settings_.sweep) {
            lane->sweep = true;
            lane->swept = now;
        }
        lane->asked = true;
        if (now - lane->noted >= kTrail) {
            lane->trail = std::exchange(lane->before, lane->mark);
            lane->noted = now;
        }
        const auto& policy = lane->entry->policy;
        const auto after = std::exchange(lane->sweep, false) ? LeaseMark{} : lane->from();
        request.lanes.push_back({policy.name, limit, policy.timeout, policy.request_hash, after});
    }
    return request;
}

int Leaser::wanted(const Lane& lane, BootClock::time_point now) {
    const int free = lane.slots.available(now);
    if (!lane.entry->gate) return free;
    return std::clamp(lane.entry->gate->allowance(now) - lane.slots.taken(now), 0, free);
}

asio::awaitable<void> Leaser::lease_once(LeaseRequest request) {
    std::vector<LeasedAttempt> leased;
    // Before the statement is sent: the worker's own deadline is never later than the database's.
    const auto at = BootClock::now();
    reserve(request);
    try {
        co_await failpoints_.hit(FailpointId::before_lease);
        auto leasing = store_.lease(request);
        leased = co_await std::move(leasing);
        backoff_.reset();
        pulse_.succeeded();
    } catch (const std::exception& error) {
        // It may have been committed all the same: those rows go back before the next lease.
        lost_ = true;
        for (auto& lane : lanes_) lane->sweep = true;
        pulse_.failed(error.what());
        count_error(observer_, error);
        log_.warn("could not lease, trying again", {{"error", error.what()}});
        settle(request);
        co_return;
    }
    remember(request, leased);
    const auto count = leased.size();
    if (count > 0) {
        last_work_ = BootClock::now();
        observer_.leased(count);
        dispatch(std::move(leased), at);
    }
    settle(request);
}

asio::awaitable<void> Leaser::release_lost() {
    try {
        co_await failpoints_.hit(FailpointId::before_release_lost);
        auto releasing = store_.release_lost_leases(settings_.worker, attempts_.in_flight());
        const int released = co_await std::move(releasing);
        lost_ = false;
        if (released > 0) {
            log_.info(
                "gave back leases whose answer was lost", {{"rows", std::to_string(released)}}
            );
        }
    } catch (const std::exception& error) {
        pulse_.failed(error.what());
        count_error(observer_, error);
        log_.warn("could not give back lost leases, trying again", {{"error", error.what()}});
    }
}

void Leaser::remember(const LeaseRequest& request, const std::vector<LeasedAttempt>& leased) {
    struct Taken {
        int count = 0;
        LeaseMark last;
    };
    std::map<std::string_view, Taken> all;
    for (const auto& attempt : leased) {
        auto& taken = all[attempt.intent.tool];
        ++taken.count;
        taken.last = later(taken.last, {attempt.intent.priority, attempt.intent.seq.value});
    }
    for (const auto& asked : request.lanes) {
        auto& lane = *by_tool_.find(asked.tool)->second;
        const auto& [count, last] = all[asked.tool];
        lane.full = count >= asked.limit;
        if (lane.full) {
            // More may wait right behind, also where everything was taken before.
            lane.mark = last;
            lane.before = earlier(lane.before, last);
            lane.trail = earlier(lane.trail, last);
        } else {
            lane.mark = later(lane.mark, last);
        }
        if (on_polled) on_polled(asked.tool, count > 0);
    }
}

void Leaser::dispatch(std::vector<LeasedAttempt> leased, BootClock::time_point at) {
    const auto now = BootClock::now();
    for (auto& attempt : leased) {
        auto& lane = *by_tool_.find(attempt.intent.tool)->second;
        const bool tool_allows = lane.slots.claim(now);
        const bool all_allow = calls_.claim(now);
        attempts_.start({
            .attempt = std::move(attempt),
            .entry = lane.entry,
            .leased_at = at,
            .worker_slot = slots_.take(),
            .call_slot = calls_.take(),
            .tool_slot = lane.slots.take(),
            .unsent = !tool_allows || !all_allow,
        });
    }
    for (const auto& lane : lanes_) {
        observer_.slots(lane->entry->policy.name, lane->slots.used(), lane->slots.limit());
    }
}

// With rows and slots at hand: at once, while the attempts start. Else until the next poll, a freed
// slot that somebody waits for, or a token; and then a moment longer, so that a lease under load is
// not one row.
asio::awaitable<void> Leaser::pause() {
    if (ready()) co_return;
    stand_in_line();
    const bool busy = idle_for() < kBusyFor;
    auto limit = random_.jittered(busy ? settings_.poll_busy : settings_.poll_idle);
    if (const auto opening = until_opening(); opening > std::chrono::nanoseconds::zero()) {
        limit = std::min(limit, opening);
    }
    const bool rang = co_await bell_.wait(limit);
    const auto until = BootClock::now() + settings_.poll_busy;
    while (rang && !stopping_ && hungry() && !ready()) {
        const auto left = until - BootClock::now();
        if (left <= std::chrono::nanoseconds::zero()) break;
        co_await bell_.wait(left);
    }
}

// A closed lane has rows, too, but a free slot is of no use to it.
bool Leaser::hungry() const {
    const auto now = BootClock::now();
    return std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) {
        return lane->full && (!lane->entry->gate || lane->entry->gate->allowance(now) > 0);
    });
}

// Whether a lane that had more rows than slots could take a good part of its slots again.
bool Leaser::ready() const {
    const auto enough = [](int free, int limit) { return free >= std::max(1, limit / 4); };
    const auto now = BootClock::now();
    return enough(slots_.free(), settings_.concurrency) && calls_.free(now) > 0 &&
           std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& lane) {
               return lane->full && enough(lane->slots.free(now), lane->slots.limit()) &&
                      wanted(*lane, now) > 0;
           });
}

// Until the first lane that has free slots gets a token or has its gate opened, or slots that a
// silent outbox set aside fall back; zero: none waits.
std::chrono::nanoseconds Leaser::until_opening() const {
    constexpr auto kNone = std::chrono::nanoseconds::zero();
    auto wait = kNone;
    const auto now = BootClock::now();
    const auto sooner = [&](std::chrono::nanoseconds own) {
        if (own > kNone) wait = wait == kNone ? own : std::min(wait, own);
    };
    if (calls_.free(now) == 0) sooner(calls_.fallback_wait(now));
    for (const auto& lane : lanes_) {
        if (lane->slots.free(now) == 0) {
            sooner(lane->slots.fallback_wait(now));
            continue;
        }
        auto own = lane->slots.token_wait();
        if (lane->entry->gate) own = std::max(own, lane->entry->gate->wait(now));
        sooner(own);
    }
    return wait;
}

void Leaser::on_free(Lane& lane) {
    observer_.slots(lane.entry->policy.name, lane.slots.used(), lane.slots.limit());
    if (lane.full) bell_.ring();
}

}  // namespace outbox
