#include "outbox/reconciler.hpp"

#include <algorithm>
#include <utility>

#include "outbox/decide.hpp"

namespace outbox {

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
      probes_(executor, std::move(on_escape)),
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

void Reconciler::cut() {
    stop();
    calls_.cut();
}

// Manual tools are claimed too: whoever declared the lease expired did not know that only a person
// can help. So are reads: what became unknown while nobody served the tool, or it was a write.
std::vector<ReconcileLane> Reconciler::lanes() const {
    std::vector<ReconcileLane> lanes;
    int free = settings_.concurrency - static_cast<int>(probes_.size());
    const int share =
        std::max(1, free / static_cast<int>(std::max<std::size_t>(tools_.all().size(), 1)));
    for (const auto& [name, entry] : tools_.all()) {
        const auto running = running_.find(name);
        const int own =
            settings_.tool_concurrency - (running == running_.end() ? 0 : running->second);
        const int limit = std::min({own, share, free});
        if (limit <= 0) continue;
        free -= limit;
        lanes.push_back({name, limit, entry.policy.timeout});
    }
    return lanes;
}

asio::awaitable<void> Reconciler::claim() {
    auto asked = lanes();
    if (asked.empty()) co_return;
    std::map<std::string, int, std::less<>> limits;
    for (const auto& lane : asked) limits[lane.tool] = lane.limit;
    const auto at = BootClock::now();
    co_await failpoints_.hit(FailpointId::before_claim);
    auto claiming = store_.claim_probes(settings_.worker, settings_.margin, std::move(asked));
    auto claims = co_await std::move(claiming);
    more_ = false;
    for (auto& one : claims) {
        const auto* entry = tools_.find(one.intent.tool);
        more_ = more_ || --limits[one.intent.tool] == 0;
        ++running_[one.intent.tool];
        probes_.spawn("probe", run_probe(std::move(one), *entry, at));
    }
}

asio::awaitable<void> Reconciler::run_probe(
    ClaimedProbe claim, const ToolEntry& entry, BootClock::time_point claimed_at
) {
    auto settling = settle(claim, entry, claimed_at);
    auto next = co_await std::move(settling);
    auto writing = completer_.write(next);
    const auto fate = co_await std::move(writing);
    --running_[claim.intent.tool];
    if (fate == Fate::applied && on_written) on_written(next);
    if (fate == Fate::applied && !claim.flagged &&
        next.attention == AttentionReason::duplicate_effect) {
        observer_.duplicate_effect(next.tool);
    }
    if (more_) alarm_.wake();
}

asio::awaitable<Transition> Reconciler::settle(
    ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at
) {
    if (entry.policy.effect == Effect::read) {
        co_return decide_read(claim, entry.policy, claim.probe_started_at, random_.uniform());
    }
    if (entry.policy.reconcile.manual) co_return decide_manual(claim);
    const Deadline deadline{claimed_at + entry.policy.timeout};
    auto asking = ask(claim, entry, deadline);
    const auto verdict = co_await std::move(asking);
    observer_.probed(claim.intent.tool, verdict);
    if (distrusted) {
        claim.distrust =
            std::chrono::ceil<std::chrono::milliseconds>(distrusted(claimed_at, entry.policy));
    }
    if (unseen_step) claim.deadline_at += std::chrono::ceil<DbTime::duration>(unseen_step());
    const auto elapsed =
        std::chrono::duration_cast<DbTime::duration>(BootClock::now() - claimed_at);
    auto next = decide_probe(
        claim, verdict, entry.policy, claim.probe_started_at + elapsed, random_.uniform()
    );
    log_.write(
        next.attention ? LogLevel::warn : LogLevel::info,
        "probe answered",
        {{"operation_id", claim.intent.id.value},
         {"tool", claim.intent.tool},
         {"verdict", std::string(verdict_name(verdict))},
         {"status", std::string(to_string(next.to))},
         {"attention", next.attention ? std::string(to_string(*next.attention)) : ""},
         {"error", next.error ? next.error->message : ""}}
    );
    co_return next;
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
        auto calling = calls_.run(entry.tool->probe(std::move(call), deadline));
        verdict = co_await std::move(calling);
        co_await failpoints_.hit(FailpointId::after_probe_before_settle);
    } catch (const std::exception& error) {
        verdict = Inconclusive{.error = {"probe_failed", error.what()}};
    }
    co_return verdict;
}

}  // namespace outbox
