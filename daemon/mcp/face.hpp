#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/mcp/call.hpp"
#include "daemon/mcp/ledger.hpp"
#include "daemon/mcp/message.hpp"
#include "daemon/mcp/offer.hpp"
#include "outbox/log.hpp"

namespace outboxd::mcp {

// One request under way. The transport keeps it until handle() has returned.
struct Exchange {
    explicit Exchange(asio::any_io_executor executor) : bell(std::move(executor)) {}

    RunSource run;
    // Sends a notification that belongs to the request; false: nobody listens. May be empty.
    std::function<asio::awaitable<bool>(std::string)> notify;
    // The client is not interested any more, or has gone. What was recorded goes on.
    void stop_waiting() {
        stopped = true;
        bell.ring();
    }
    bool stopped = false;
    outbox::Bell bell;
};

struct Reply {
    std::string text;  // one line; empty: there is nothing to say
    int http_status = 200;
};

// The MCP server itself, whatever carries its messages: one message in, its answer out. Every
// request stands for itself; nothing is remembered between them. A call is recorded by enqueue
// and waited for: the daemon does it, so neither a cancelled request nor a client that has gone
// ends an attempt. Lives and is used on the io thread.
class Face {
 public:
    // wait: how long a call waits for its end.
    Face(
        Ledger& ledger,
        outbox::Log& log,
        std::shared_ptr<const Offer> offer,
        std::chrono::milliseconds wait
    )
        : ledger_(ledger), log_(log), offer_(std::move(offer)), wait_(wait) {}

    // A reload; calls under way keep what they began with.
    void configure(std::shared_ptr<const Offer> offer, std::chrono::milliseconds wait) {
        offer_ = std::move(offer);
        wait_ = wait;
    }
    [[nodiscard]] bool offers_something() const { return !offer_->empty(); }

    asio::awaitable<Reply> handle(Message message, Exchange& exchange);

    static constexpr int kMaxCalls = 256;  // under way at once; more are refused

 private:
    // A row, or the answer instead of one.
    struct Recorded {
        outbox::Json row;
        std::optional<outbox::Json> answer;
    };
    using Ask = std::function<asio::awaitable<std::string>()>;

    [[nodiscard]] Reply list(const Message& message) const;
    asio::awaitable<Reply> call(const Message& message, Exchange& exchange);
    asio::awaitable<outbox::Json> carry_out(
        EnqueuePlan plan, const Message& message, Exchange& exchange
    );
    asio::awaitable<outbox::Json> carry_out(
        CompensatePlan plan, const Offer& offer, const Message& message, Exchange& exchange
    );
    asio::awaitable<outbox::Json> look(std::string operation_id, const Offer& offer);
    asio::awaitable<Recorded> record(Ask ask, std::string operation_id, Exchange& exchange);
    asio::awaitable<outbox::Json> settle(
        outbox::Json receipt, const Message& message, Exchange& exchange
    );
    asio::awaitable<std::optional<outbox::Json>> read(std::string operation_id);

    Ledger& ledger_;
    outbox::Log& log_;
    std::shared_ptr<const Offer> offer_;
    std::chrono::milliseconds wait_;
    int calls_ = 0;
};

}  // namespace outboxd::mcp
