#include "outbox/pg/planner_lanes.hpp"

#include <utility>

#include "outbox/pg/lane.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;

// Another planner's open transaction may hold the very id: not for ever, for the lane is shared.
constexpr SessionSettings kWrite{.statement_timeout = 10s, .lock_timeout = 2s};
constexpr SessionSettings kRead{.statement_timeout = 10s, .lock_timeout = 2s};

// The notification is a hint, the poll is the truth.
constexpr std::chrono::milliseconds kPoll = 1000ms;
constexpr std::chrono::milliseconds kPollUnheard = 100ms;  // nobody would tell

using Waiting = std::multimap<std::string, Bell*>;

// Takes the bell out again.
class Registered {
 public:
    Registered(Waiting& waiting, const std::string& id, Bell& bell)
        : waiting_(waiting), place_(waiting.emplace(id, &bell)) {}
    ~Registered() { waiting_.erase(place_); }
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;

 private:
    Waiting& waiting_;
    Waiting::iterator place_;
};

}  // namespace

PlannerLanes::PlannerLanes(const std::string& dsn, asio::any_io_executor executor)
    : write_(std::make_unique<Lane>(dsn, kWrite, nullptr)),
      read_(std::make_unique<Lane>(dsn, kRead, nullptr)),
      listener_(dsn, std::move(executor), [this](const auto& ids) { ended(ids); }) {}

PlannerLanes::~PlannerLanes() = default;

asio::awaitable<std::string> PlannerLanes::enqueue(EnqueueCall call) {
    listener_.start();
    auto work = [call = std::move(call)](Session& session) { return pg::enqueue(session, call); };
    auto running = write_->run(std::move(work));
    co_return co_await std::move(running);
}

asio::awaitable<std::string> PlannerLanes::compensate(CompensateCall call) {
    listener_.start();
    auto work = [call = std::move(call)](Session& session) {
        return pg::compensate(session, call);
    };
    auto running = write_->run(std::move(work));
    co_return co_await std::move(running);
}

asio::awaitable<std::string> PlannerLanes::get(std::string operation_id) {
    auto work = [id = std::move(operation_id)](Session& session) {
        return pg::get(session, id).value_or("");
    };
    auto running = read_->run(std::move(work));
    co_return co_await std::move(running);
}

std::shared_ptr<void> PlannerLanes::watch(const std::string& operation_id, Bell& bell) {
    return std::make_shared<Registered>(waiting_, operation_id, bell);
}

std::chrono::milliseconds PlannerLanes::poll_interval() const {
    return listener_.listening() ? kPoll : kPollUnheard;
}

void PlannerLanes::ended(const std::vector<std::string>& operation_ids) {
    for (const auto& id : operation_ids) {
        const auto [first, last] = waiting_.equal_range(id);
        for (auto at = first; at != last; ++at) {
            at->second->ring();
        }
    }
}

}  // namespace outbox::pg
