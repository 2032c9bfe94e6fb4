#include "outbox/completer.hpp"

#include <algorithm>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <limits>
#include <string>
#include <utility>

#include "outbox/json.hpp"
#include "outbox/utf8.hpp"

namespace outbox {

namespace {

std::string_view sentence_of(LateFate fate) {
    switch (fate) {
        case LateFate::settled:
            return "a late answer settled an operation";
        case LateFate::flagged:
            return "a late answer contradicts what is recorded";
        case LateFate::duplicate:
            return "a late answer shows a second effect";
        case LateFate::stored:
            return "a late answer was filed";
    }
    return {};
}

}  // namespace

Completer::Completer(
    asio::any_io_executor executor,
    Store& store,
    Observer& observer,
    Log& log,
    Failpoints& failpoints,
    Settings settings
)
    : executor_(executor),
      store_(store),
      observer_(observer),
      log_(log),
      failpoints_(failpoints),
      settings_(settings),
      bell_(executor),
      retry_(executor) {}

asio::awaitable<void> Completer::run() {
    // The last flush must not be cut short: an outcome that is known has to be recorded.
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    for (;;) {
        auto batch = next_batch();
        if (!batch.empty()) {
            auto writing = write_batch(std::move(batch));
            co_await std::move(writing);
        } else if (stopping_ && waiting_.empty()) {
            break;
        } else {
            co_await bell_.wait(until_next());
        }
    }
    closed_ = true;
}

void Completer::stop() {
    stopping_ = true;
    bell_.ring();
}

void Completer::abandon() {
    abandoned_ = true;
    stop();
    retry_.ring();
}

asio::awaitable<std::optional<Fate>> Completer::write(Transition transition) {
    if (closed_) co_return std::nullopt;
    make_storable(transition);
    Entry entry(executor_, std::move(transition));
    queue_.push_back(&entry);
    bell_.ring();
    while (!entry.done) co_await entry.settled.wait();
    if (entry.fate == Fate::fenced) {
        observer_.fenced(entry.transition.tool);
        if (entry.transition.writer == Transition::Writer::attempt ||
            entry.transition.evidence != Transition::Evidence::none) {
            auto late = record_late(std::move(entry.transition));
            co_await std::move(late);
        } else {
            log_.info(
                "a probe came too late, its verdict is dropped",
                {{"operation_id", entry.transition.id.value}, {"tool", entry.transition.tool}}
            );
        }
    }
    co_return entry.fate;
}

// What the other side worded becomes what jsonb can hold. Once, before the first try: a later try
// must find what the earlier one wrote.
void Completer::make_storable(Transition& transition) const {
    const auto max_bytes = settings_.max_result;
    transition.result = storable(std::move(transition.result), max_bytes);
    if (transition.error) {
        for (auto* text : {&transition.error->code, &transition.error->message}) {
            const auto clean = storable(Json(*text), std::numeric_limits<std::size_t>::max());
            *text = std::string(utf8_head(*clean.as_string(), max_bytes));
        }
    }
    for (auto& event : transition.events) {
        event.detail = storable(std::move(event.detail), max_bytes);
    }
}

Completer::Batch Completer::next_batch() {
    if (abandoned_) {
        give_up(Batch(queue_.begin(), queue_.end()));
        give_up(std::exchange(waiting_, {}));
        queue_.clear();
        return {};
    }
    // A row that was refused goes alone: it must not hold up others again.
    const auto now = BootClock::now();
    const auto due = std::find_if(waiting_.begin(), waiting_.end(), [&](const Entry* entry) {
        return entry->not_before <= now;
    });
    if (due != waiting_.end() &&
        (queue_.empty() || (*due)->not_before + std::chrono::seconds(1) < now)) {
        Batch alone{*due};
        waiting_.erase(due);
        return alone;
    }
    const auto size = std::min(queue_.size(), settings_.max_batch);
    const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(size);
    Batch batch(queue_.begin(), end);
    queue_.erase(queue_.begin(), end);
    return batch;
}

std::chrono::nanoseconds Completer::until_next() const {
    auto next = std::chrono::nanoseconds(Bell::kForever);
    for (const auto* entry : waiting_) {
        next = std::min<std::chrono::nanoseconds>(next, entry->not_before - BootClock::now());
    }
    return std::max(next, std::chrono::nanoseconds::zero());
}

asio::awaitable<void> Completer::write_batch(Batch batch) {
    std::vector<Batch> parts;
    parts.push_back(std::move(batch));
    while (!parts.empty()) {
        auto part = std::move(parts.back());
        parts.pop_back();
        if (abandoned_) {
            give_up(std::move(part));
            continue;
        }
        auto writing = try_write(part);
        const auto failed = co_await std::move(writing);
        if (!failed) {
            backoff_.reset();
        } else if (*failed == StoreError::Kind::unavailable ||
                   *failed == StoreError::Kind::in_doubt) {
            // The database is away: nothing else could be written either.
            parts.push_back(std::move(part));
            co_await retry_.wait(backoff_.next());
        } else {
            split_or_wait(std::move(part), parts);
        }
    }
}

asio::awaitable<std::optional<StoreError::Kind>> Completer::try_write(const Batch& batch) {
    std::vector<Transition> transitions;
    transitions.reserve(batch.size());
    for (const auto* entry : batch) transitions.push_back(entry->transition);
    std::optional<StoreError::Kind> failed;
    try {
        co_await failpoints_.hit(FailpointId::before_complete);
        auto writing = store_.complete(std::move(transitions));
        const auto fates = co_await std::move(writing);
        co_await failpoints_.hit(FailpointId::after_complete_before_ack);
        observer_.completed(batch.size());
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (fates.at(i) == Fate::duplicate) {
                observer_.duplicate_effect(batch[i]->transition.tool);
                log_.error(
                    "this attempt's effect is the second one of its operation",
                    {{"operation_id", batch[i]->transition.id.value},
                     {"tool", batch[i]->transition.tool}}
                );
            }
            settle(*batch[i], fates[i]);
        }
    } catch (const StoreError& error) {
        failed = error.kind();
        count_error(observer_, error);
        log_.warn(
            "could not record a batch of outcomes, trying again",
            {{"rows", std::to_string(batch.size())}, {"error", error.what()}}
        );
    } catch (const std::exception& error) {
        failed = StoreError::Kind::in_doubt;
        count_error(observer_, error);
        log_.error("could not record a batch of outcomes, trying again", {{"error", error.what()}});
    }
    co_return failed;
}

// One odd or locked row never stops a batch: it is split until that row is alone, and that one
// waits. (What cannot be stored as it is, the store itself cuts down to its digest.)
void Completer::split_or_wait(Batch batch, std::vector<Batch>& parts) {
    if (batch.size() > 1) {
        const auto middle = batch.begin() + static_cast<std::ptrdiff_t>(batch.size() / 2);
        parts.emplace_back(middle, batch.end());
        parts.emplace_back(batch.begin(), middle);
        return;
    }
    auto& entry = *batch.front();
    entry.not_before = BootClock::now() + entry.backoff.next();
    waiting_.push_back(&entry);
}

asio::awaitable<void> Completer::record_late(Transition transition) {
    Backoff backoff;
    Bell pause(executor_);
    while (!abandoned_) {
        try {
            co_await failpoints_.hit(FailpointId::before_late);
            auto recording = store_.record_late(transition);
            const auto fate = co_await std::move(recording);
            co_await failpoints_.hit(FailpointId::after_late_before_ack);
            observer_.late_result(transition.tool);
            if (fate == LateFate::duplicate) observer_.duplicate_effect(transition.tool);
            log_.warn(
                sentence_of(fate),
                {{"operation_id", transition.id.value},
                 {"tool", transition.tool},
                 {"epoch", std::to_string(transition.epoch.value)}}
            );
            co_return;
        } catch (const std::exception& error) {
            count_error(observer_, error);
            log_.warn(
                "could not file a late answer, trying again",
                {{"operation_id", transition.id.value}, {"error", error.what()}}
            );
        }
        co_await pause.wait(backoff.next());
    }
}

void Completer::settle(Entry& entry, std::optional<Fate> fate) {
    entry.fate = fate;
    entry.done = true;
    entry.settled.ring();
}

void Completer::give_up(Batch batch) {
    for (auto* entry : batch) {
        log_.error(
            "an outcome could not be recorded before the end, its lease will expire",
            {{"operation_id", entry->transition.id.value}, {"tool", entry->transition.tool}}
        );
        settle(*entry, std::nullopt);
    }
}

}  // namespace outbox
