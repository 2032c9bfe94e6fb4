#pragma once

#include "outbox/store.hpp"
#include "tests/support/memory_store.hpp"

namespace sim {

// One daemon's view of the store that all share: it tells the engine, as PgStore does, when a
// statement ran on both clocks, so that a step of the database's clock is noticed.
class Session : public outbox::Store {
 public:
    explicit Session(test::MemoryStore& store) : store_(store) {}

    boost::asio::awaitable<std::vector<outbox::LeasedAttempt>> lease(outbox::LeaseRequest request
    ) override {
        const auto before = outbox::BootClock::now();
        auto leasing = store_.lease(std::move(request));
        auto leased = co_await std::move(leasing);
        if (!leased.empty()) tell(leased.front().leased_at, before);
        co_return leased;
    }
    boost::asio::awaitable<std::vector<outbox::ClaimedProbe>> claim_probes(
        outbox::WorkerId worker,
        std::chrono::milliseconds margin,
        std::vector<outbox::ReconcileLane> lanes
    ) override {
        const auto before = outbox::BootClock::now();
        auto claiming = store_.claim_probes(std::move(worker), margin, std::move(lanes));
        auto claims = co_await std::move(claiming);
        if (!claims.empty()) tell(claims.front().probe_started_at, before);
        co_return claims;
    }
    boost::asio::awaitable<void> heartbeat(outbox::WorkerInfo worker) override {
        const auto before = outbox::BootClock::now();
        auto beating = store_.heartbeat(std::move(worker));
        co_await std::move(beating);
        tell(store_.now(), before);
    }
    boost::asio::awaitable<int> release_lost_leases(
        outbox::WorkerId worker, std::vector<outbox::Seq> in_flight
    ) override {
        return store_.release_lost_leases(std::move(worker), std::move(in_flight));
    }
    boost::asio::awaitable<std::vector<outbox::Fate>> complete(std::vector<outbox::Transition> batch
    ) override {
        return store_.complete(std::move(batch));
    }
    boost::asio::awaitable<outbox::LateFate> record_late(outbox::Transition late) override {
        return store_.record_late(std::move(late));
    }
    boost::asio::awaitable<std::optional<outbox::ResentAttempt>> journal_resend(
        outbox::WorkerId worker,
        outbox::Seq seq,
        outbox::Epoch claimed,
        std::chrono::milliseconds timeout,
        std::chrono::milliseconds margin
    ) override {
        return store_.journal_resend(std::move(worker), seq, claimed, timeout, margin);
    }
    boost::asio::awaitable<std::vector<outbox::ToolDrift>> find_drift(
        std::vector<outbox::ToolPolicy> tools, std::vector<outbox::WorkerId> siblings
    ) override {
        return store_.find_drift(std::move(tools), std::move(siblings));
    }
    boost::asio::awaitable<outbox::MaintenanceReport> maintain(bool judge_workers) override {
        return store_.maintain(judge_workers);
    }
    boost::asio::awaitable<void> retire(outbox::WorkerId worker) override {
        return store_.retire(std::move(worker));
    }
    boost::asio::awaitable<void> publish_tools(
        outbox::WorkerId worker, std::vector<outbox::ToolPolicy> tools
    ) override {
        return store_.publish_tools(std::move(worker), std::move(tools));
    }
    boost::asio::awaitable<std::optional<outbox::KeySettings>> key_settings(
        std::string tool, std::int64_t request_hash
    ) override {
        return store_.key_settings(std::move(tool), request_hash);
    }
    boost::asio::awaitable<void> keep_handle(
        outbox::OperationId id, outbox::Epoch attempt, std::string handle
    ) override {
        return store_.keep_handle(std::move(id), attempt, std::move(handle));
    }
    boost::asio::awaitable<std::optional<std::string>> find_handle(
        outbox::OperationId id, outbox::Epoch attempt
    ) override {
        return store_.find_handle(std::move(id), attempt);
    }
    boost::asio::awaitable<std::vector<outbox::ToolSample>> sample() override {
        return store_.sample();
    }
    boost::asio::awaitable<outbox::RollUp> roll_up() override { return store_.roll_up(); }

 private:
    void tell(outbox::DbTime database, outbox::BootClock::time_point before) const {
        if (on_clock) on_clock({database, before, outbox::BootClock::now()});
    }

    test::MemoryStore& store_;
};

}  // namespace sim
