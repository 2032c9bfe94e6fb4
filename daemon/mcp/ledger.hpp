#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "outbox/bell.hpp"
#include "outbox/json.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd::mcp {

namespace asio = boost::asio;

// The outbox as the face uses it: outbox::pg::PlannerLanes, or a test's.
class Ledger {
 public:
    virtual ~Ledger() = default;

    // Rows as JSON text; all throw outbox::StoreError.
    virtual asio::awaitable<std::string> enqueue(outbox::pg::EnqueueCall call) = 0;
    virtual asio::awaitable<std::string> compensate(outbox::pg::CompensateCall call) = 0;
    // Empty: unknown id.
    virtual asio::awaitable<std::string> get(std::string operation_id) = 0;

    // Rings the bell when the operation has ended, as long as the watch is kept: a hint.
    [[nodiscard]] virtual std::shared_ptr<void> watch(
        const std::string& operation_id, outbox::Bell& bell
    ) = 0;
    // How long to go on without looking.
    [[nodiscard]] virtual std::chrono::milliseconds poll_interval() const = 0;
};

}  // namespace outboxd::mcp
