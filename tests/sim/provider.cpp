#include "tests/sim/provider.hpp"

#include <algorithm>
#include <utility>

namespace sim {

using namespace outbox;
using namespace std::chrono_literals;

namespace {

Json result_of(const std::string& text) {
    Json result;
    result.set("id", text);
    return result;
}

}  // namespace

void Provider::send(const std::string& id, int account, const std::shared_ptr<Request>& request) {
    if (trouble(draw_.request_lost)) return;
    std::weak_ptr<Request> to = request;
    const auto way = calm_ ? 10ms : dice_.up_to(draw_.way);
    Time::instance().plan(way, [this, id, account, to] { reply(to, arrive(id, account)); });
}

void Provider::look_up(const std::string& id, int account, const std::shared_ptr<LookUp>& look_up) {
    if (trouble(draw_.request_lost / 2)) return;
    std::weak_ptr<LookUp> to = look_up;
    const auto way = calm_ ? 10ms : dice_.up_to(300ms);
    Time::instance().plan(way, [this, id, account, to] {
        reply(
            to,
            trouble(draw_.probe_fails)
                ? Verdict(Inconclusive{{"status_503", "The look-up failed."}})
                : answer(id, account)
        );
    });
}

int Provider::effects(const std::string& id) const {
    const auto found = records_.find(id);
    if (found == records_.end()) return 0;
    return static_cast<int>(std::count_if(
        found->second.begin(), found->second.end(), [](const Record& r) { return r.effect; }
    ));
}

bool Provider::has_result(const std::string& id, const std::string& result) const {
    const auto found = records_.find(id);
    return found != records_.end() &&
           std::any_of(found->second.begin(), found->second.end(), [&](const Record& r) {
               return r.effect && r.result == result;
           });
}

template <class Answer>
void Provider::reply(const std::weak_ptr<Connection<Answer>>& to, Answer answer) {
    if (trouble(draw_.answer_lost)) return;
    const auto way = calm_                             ? 10ms
                     : dice_.chance(draw_.answer_late) ? dice_.up_to(2 * draw_.write.timeout)
                                                       : dice_.up_to(200ms);
    Time::instance().plan(way, [to, answer = std::move(answer)]() mutable {
        if (const auto connection = to.lock()) connection->receive(std::move(answer));
    });
}

Outcome Provider::arrive(const std::string& id, int account) {
    if (draw_.hole && effects(id) > 0) return Rejected{.error = {"exists", "It is there."}};
    if (trouble(draw_.refused)) return Rejected{.error = {"refused", "No."}};
    if (trouble(draw_.busy)) {
        RetryLater later;
        later.error = {"status_429", "Too many."};
        later.counts = dice_.chance(0.5);
        return later;
    }
    if (trouble(draw_.broken)) {
        if (dice_.chance(0.5)) happen(id, account);
        return Unknown{.cause = Cause::status, .error = {"status_500", "Something broke."}};
    }
    if (trouble(draw_.accepted)) return accept(id, account);
    return Succeeded{.result = result_of(happen(id, account)), .note = {}};
}

Outcome Provider::accept(const std::string& id, int account) {
    const bool effect = dice_.chance(0.7);
    if (effect) happen(id, account);
    auto& records = records_[id];
    if (!effect) records.push_back({account, "", Time::instance().now(), {}, false});
    records.back().done_at = Time::instance().now() + dice_.between(100ms, 20s);
    return Accepted{};
}

std::string Provider::happen(const std::string& id, int account) {
    auto& records = records_[id];
    const auto result = id + "/" + std::to_string(records.size() + 1);
    const auto lag = draw_.lag > 0ms && dice_.chance(0.7) ? dice_.up_to(draw_.lag) : draw_.lag;
    records.push_back({account, result, Time::instance().now() + lag, {}, true});
    if (on_effect) on_effect(id, effects(id));
    return result;
}

Verdict Provider::answer(const std::string& id, int account) {
    const auto now = Time::instance().now();
    std::vector<const Record*> seen;
    for (const auto& record : records_[id]) {
        if (record.account != account || record.visible_at > now) continue;
        if (record.done_at && *record.done_at > now) return Pending{};
        if (record.effect) seen.push_back(&record);
    }
    if (seen.empty()) return Absent{};
    if (seen.size() > 1) return Conflict{{"twice", "It is there twice."}};
    return Found{.result = result_of(seen.front()->result), .note = {}};
}

}  // namespace sim
