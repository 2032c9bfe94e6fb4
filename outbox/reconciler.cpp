#include "outbox/reconciler.hpp"

#include <algorithm>
#include <utility>

#include "outbox/decide.hpp"
#include "outbox/traceparent.hpp"

namespace outbox {
namespace {

// Now on the database's clock; never earlier than it is.
DbTime time_of(const ClaimedProbe& claim, BootClock::time_point claimed_at) {
    return claim.probe_started_at +
           std::chrono::duration_cast<DbTime::duration>(BootClock::now() - claimed_at);
}

}  // namespace

Reconciler::Reconciler(
    asio::any_io_executor executor,
    Store& store,
    const Toolset& tools,
    Completer& completer,
    ProviderKeys& keys,
    Observer& observer,
    Log& log,
    Failpoints& failpoints,
    Random& random,
    Settings settings,
    TaskGroup::OnEscape on_escape
)
    : store_(store),
      tools_(tools),
      completer_(completer),
      keys_(keys),
      observer_(observer),
      log_(log),
      failpoints_(failpoints),
      random_(random),
      settings_(std::move(settings)),
      probes_(executor, on_escape),
      resends_(executor, std::move(on_escape)),
      alarm_(executor),
      calls_(std::move(executor)) {}

asio::awaitable<void> Reconciler::run() {
    while (!stopping_) {
        std::chrono::nanoseconds pause = settings_.poll;
        try {
            auto claiming = claim();
            co_await std::move(claiming);
            backoff_.reset();
            pulse_.succeeded();
            observer_.reconciled_pass();
            // After a full claim the end of a probe wakes: see run_probe.
            pause = random_.jittered(settings_.poll);
            const auto opening = until_opening();
            if (opening > std::chrono::nanoseconds::zero()) pause = std::min(pause, opening);
        } catch (const std::exception& error) {
            pause = backoff_.next();
            pulse_.failed(error.what());
            count_error(observer_, error);
            log_.warn(
                "could not claim what is due for a probe, trying again", {{"error", error.what()}}
            );
        }
        co_await alarm_.wait(pause);
    }
}

void Reconciler::stop() {
    stopping_ = true;
    alarm_.wake();
}

asio::awaitable<bool> Reconciler::join(std::chrono::nanoseconds limit) {
    const auto until = Deadline::after(limit);
    auto first = resends_.join(limit);
    const bool resent = co_await std::move(first);
    auto then = probes_.join(until.left());
    const bool looked = co_await std::move(then);
    co_return resent&& looked;
}

void Reconciler::cut() {
    stop();
    calls_.cut();
}

// Probes of a tool that may be under way: none while the host they ask is down or asked for
// patience; then they stay due. Where nobody is asked there is nothing to wait for.
int Reconciler::allowance(const ToolEntry& entry) const {
    const auto& policy = entry.policy;
    const auto running = running_.find(policy.name);
    const int under_way = running == running_.end() ? 0 : running->second;
    int free = settings_.tool_concurrency - under_way;
    if (policy.effect == Effect::read || policy.reconcile.manual) return free;
    if (policy.reconcile.resend && policy.concurrency > 0) {
        free = std::min(free, policy.concurrency - under_way);
    }
    if (entry.probe_gate) {
        free = std::min(free, entry.probe_gate->allowance(BootClock::now()) - under_way);
    }
    return free;
}

// Until the first closed gate opens by itself; zero: none is closed.
std::chrono::nanoseconds Reconciler::until_opening() const {
    constexpr auto kNone = std::chrono::nanoseconds::zero();
    auto wait = kNone;
    const auto now = BootClock::now();
    for (const auto& [name, entry] : tools_.all()) {
        if (!entry.probe_gate) continue;
        const auto own = entry.probe_gate->wait(now);
        if (own > kNone) wait = wait == kNone ? own : std::min(wait, own);
    }
    return wait;
}

// Manual tools are claimed too: whoever declared the lease expired did not know that only a person
// can help. So are reads: what became unknown while nobody served the tool, or it was a write.
std::vector<ReconcileLane> Reconciler::lanes() const {
    std::vector<ReconcileLane> lanes;
    int free = settings_.concurrency - static_cast<int>(in_flight());
    const int share =
        std::max(1, free / static_cast<int>(std::max<std::size_t>(tools_.all().size(), 1)));
    for (const auto& [name, entry] : tools_.all()) {
        const int limit = std::min({allowance(entry), share, free});
        if (limit <= 0) continue;
        free -= limit;
        const auto& policy = entry.policy;
        lanes.push_back(
            {.tool = name,
             .limit = limit,
             .timeout = policy.timeout,
             .resend = policy.reconcile.resend}
        );
    }
    return lanes;
}

asio::awaitable<void> Reconciler::claim() {
    auto asked = lanes();
    if (asked.empty()) co_return;
    std::map<std::string, int, std::less<>> limits;
    // Slots are taken before the claim, so that no attempt gets them in between.
    std::map<std::string, std::vector<std::shared_ptr<void>>, std::less<>> slots;
    for (const auto& lane : asked) {
        limits[lane.tool] = lane.limit;
        for (int i = 0; lane.resend && take_attempt && i < lane.limit; ++i) {
            slots[lane.tool].push_back(take_attempt(lane.tool));
        }
    }
    const auto at = BootClock::now();
    co_await failpoints_.hit(FailpointId::before_claim);
    auto claiming = store_.claim_probes(settings_.worker, settings_.margin, std::move(asked));
    auto claims = co_await std::move(claiming);
    more_ = false;
    for (auto& one : claims) {
        const auto* entry = tools_.find(one.intent.tool);
        more_ = more_ || --limits[one.intent.tool] == 0;
        ++running_[one.intent.tool];
        std::shared_ptr<void> slot;
        if (auto& taken = slots[one.intent.tool]; !taken.empty()) {
            slot = std::move(taken.back());
            taken.pop_back();
        }
        const auto& policy = entry->policy;
        const bool resend = policy.reconcile.resend && policy.effect == Effect::write;
        auto& group = resend ? resends_ : probes_;
        group.spawn("probe", run_probe(std::move(one), *entry, at, std::move(slot)));
    }
}

asio::awaitable<void> Reconciler::run_probe(
    ClaimedProbe claim,
    const ToolEntry& entry,
    BootClock::time_point claimed_at,
    std::shared_ptr<void> slot
) {
    auto settling = settle(claim, entry, claimed_at);
    auto next = co_await std::move(settling);
    slot.reset();  // the call is over
    std::optional<Fate> fate;
    if (next) {
        auto writing = completer_.write(*next);
        fate = co_await std::move(writing);
    }
    --running_[claim.intent.tool];
    if (fate == Fate::applied && on_written) on_written(*next);
    if (fate == Fate::applied && !claim.flagged &&
        next->attention == AttentionReason::duplicate_effect) {
        observer_.duplicate_effect(next->tool);
    }
    if (more_) alarm_.wake();
}

asio::awaitable<std::optional<Transition>> Reconciler::settle(
    ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at
) {
    if (entry.policy.effect == Effect::read) {
        co_return decide_read(claim, entry.policy, claim.probe_started_at, random_.uniform());
    }
    if (entry.policy.reconcile.manual) co_return decide_manual(claim);
    if (entry.policy.reconcile.resend) {
        auto resending = resend(claim, entry, claimed_at);
        co_return co_await std::move(resending);
    }
    auto looking = look_up(claim, entry, claimed_at);
    co_return co_await std::move(looking);
}

asio::awaitable<Transition> Reconciler::look_up(
    ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at
) {
    const Deadline deadline{claimed_at + entry.policy.timeout};
    auto asking = ask(claim, entry, deadline);
    const auto verdict = co_await std::move(asking);
    observer_.probed(claim.intent.tool, verdict);
    distrust(claim, entry, claimed_at);
    auto next =
        decide_probe(claim, verdict, entry.policy, time_of(claim, claimed_at), random_.uniform());
    report(claim, verdict, next);
    co_return next;
}

// What of the database's clock cannot be relied upon delays every "absent".
void Reconciler::distrust(
    ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at
) {
    if (distrusted) {
        claim.distrust =
            std::chrono::ceil<std::chrono::milliseconds>(distrusted(claimed_at, entry.policy));
    }
    if (unseen_step) claim.deadline_at += std::chrono::ceil<DbTime::duration>(unseen_step());
}

void Reconciler::report(const ClaimedProbe& claim, const Verdict& verdict, const Transition& next) {
    log_.write(
        next.attention ? LogLevel::warn : LogLevel::info,
        "probe answered",
        {{"operation_id", claim.intent.id.value},
         {"tool", claim.intent.tool},
         {"epoch", std::to_string(claim.epoch.value)},
         {"verdict", std::string(verdict_name(verdict))},
         {"status", std::string(to_string(next.to))},
         {"attention", next.attention ? std::string(to_string(*next.attention)) : ""},
         {"error", next.error ? next.error->message : ""},
         {"trace_id", trace_id(claim.intent.traceparent)}}
    );
}

// Whatever goes wrong in asking proves nothing: inconclusive, never absent.
asio::awaitable<Verdict> Reconciler::ask(
    const ClaimedProbe& claim, const ToolEntry& entry, Deadline deadline
) {
    Verdict verdict = Inconclusive{};
    if (!claim.intent.unreadable.empty()) {
        verdict = Inconclusive{.error = {"invalid_arguments", claim.intent.unreadable}};
        co_return verdict;
    }
    try {
        co_await failpoints_.hit(FailpointId::before_probe);
        auto deriving = keys_.key(claim.intent.id, entry.policy, claim.request_hash);
        ToolCall call{
            .intent = claim.intent,
            .provider_key = {},
            .attempt = claim.attempts,
            .first_sent_at = claim.first_attempt_at,
        };
        call.provider_key = co_await std::move(deriving);
        if (entry.tool->leaves_handles() && claim.request_hash == entry.policy.request_hash) {
            auto finding = store_.find_handle(claim.intent.id, claim.attempt_epoch);
            call.handle = co_await std::move(finding);
        }
        auto calling = calls_.run(entry.tool->probe(std::move(call), deadline));
        verdict = co_await std::move(calling);
        co_await failpoints_.hit(FailpointId::after_probe_before_settle);
    } catch (const std::exception& error) {
        verdict = Inconclusive{.error = {"probe_failed", error.what()}};
    }
    co_return verdict;
}

}  // namespace outbox
