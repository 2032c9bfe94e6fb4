#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "outbox/bell.hpp"
#include "outbox/engine.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/log.hpp"
#include "outbox/observer.hpp"
#include "outbox/pg/listener.hpp"
#include "outbox/pg/pg_store.hpp"
#include "outbox/tool.hpp"

namespace outboxd {

namespace asio = boost::asio;

// What every generation uses and none owns.
struct Surroundings {
    asio::any_io_executor executor;
    outbox::Observer& observer;
    outbox::Log& log;
    outbox::Failpoints& failpoints;
    std::string dsn;
    std::string key_namespace;
    std::shared_ptr<outbox::SharedLimits> limits;  // null: shared with nobody
    std::vector<outbox::WorkerId> siblings;        // generations before it that may still drain
};

// One configuration at work: its tools, its connections, its loops. A reload starts a new one
// beside the old, which leases nothing more and ends when its last attempt has; so attempts in
// flight keep the configuration they began with. Each is a worker of its own to the database.
class Generation {
 public:
    Generation(
        const config::Config& config,
        std::unique_ptr<outbox::Toolset> tools,
        const Surroundings& surroundings
    );
    Generation(const Generation&) = delete;
    Generation& operator=(const Generation&) = delete;

    // Returns when stop() was called and everything is recorded; then it may be destroyed, unless
    // a tool did not react to being cut (engine().idle() is false).
    asio::awaitable<void> run();
    // First: drain. Second: do not wait. May be called at any time.
    void stop() { engine_.stop(); }
    // A newer one leases from here on; what runs ends in its own time. Its listener would only hold
    // the newer one's locks.
    void supersede() {
        engine_.supersede();
        if (listener_) listener_->request_stop();
    }

    [[nodiscard]] const outbox::Engine& engine() const { return engine_; }
    [[nodiscard]] const outbox::WorkerId& worker() const { return worker_; }
    // The sampled gauges, and what was enqueued and replayed since; run() does not return before
    // the answers are there.
    asio::awaitable<std::vector<outbox::ToolSample>> sample();
    asio::awaitable<outbox::RollUp> roll_up();
    asio::awaitable<outbox::pg::Horizon> horizon();
    asio::awaitable<std::vector<outbox::AttentionCount>> attention();
    asio::awaitable<outbox::pg::PrunePage> prune(
        outbox::pg::Prune what, std::chrono::milliseconds older_than, std::int64_t after, int rows
    );

 private:
    Generation(
        const config::Config& config,
        std::unique_ptr<outbox::Toolset> tools,
        const Surroundings& surroundings,
        const outbox::WorkerId& worker
    );

    template <class Answer>
    asio::awaitable<Answer> ask(asio::awaitable<Answer> asking);

    outbox::WorkerId worker_;
    asio::any_io_executor executor_;
    std::unique_ptr<outbox::Toolset> tools_;
    outbox::pg::PgStore store_;
    outbox::Engine engine_;
    std::unique_ptr<outbox::pg::Listener> listener_;  // null: worker.wakeup is off
    outbox::Bell answered_;
    int asking_ = 0;  // calls under way
};

}  // namespace outboxd
