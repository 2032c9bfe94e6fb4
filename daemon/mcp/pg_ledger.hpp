#pragma once

#include <string>
#include <utility>

#include "daemon/mcp/ledger.hpp"
#include "outbox/pg/planner_lanes.hpp"

namespace outboxd::mcp {

// The outbox in Postgres. Connects with the first call, so it costs nothing where nobody calls.
class PgLedger final : public Ledger {
 public:
    PgLedger(const std::string& dsn, asio::any_io_executor executor)
        : lanes_(dsn, std::move(executor)) {}

    asio::awaitable<std::string> enqueue(outbox::pg::EnqueueCall call) override {
        return lanes_.enqueue(std::move(call));
    }
    asio::awaitable<std::string> compensate(outbox::pg::CompensateCall call) override {
        return lanes_.compensate(std::move(call));
    }
    asio::awaitable<std::string> get(std::string operation_id) override {
        return lanes_.get(std::move(operation_id));
    }
    std::shared_ptr<void> watch(const std::string& operation_id, outbox::Bell& bell) override {
        return lanes_.watch(operation_id, bell);
    }
    std::chrono::milliseconds poll_interval() const override { return lanes_.poll_interval(); }

 private:
    outbox::pg::PlannerLanes lanes_;
};

}  // namespace outboxd::mcp
