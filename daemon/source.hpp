#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "daemon/embedded_postgres.hpp"
#include "daemon/exit_code.hpp"
#include "daemon/generation.hpp"
#include "daemon/horizon_age.hpp"
#include "daemon/log.hpp"
#include "daemon/metrics.hpp"
#include "outbox/bell.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/pg/retention.hpp"
#include "outbox/pg/sql_database.hpp"
#include "outbox/shared_limit.hpp"
#include "outbox/task_group.hpp"
#include "outbox/tool.hpp"

namespace outboxd {

namespace asio = boost::asio;

struct SourceOptions {
    std::string name;  // the namespace of its keys
    std::string dsn;
    bool alone = true;                     // the only one: nothing names it
    EmbeddedPostgres* postgres = nullptr;  // the server, when it is ours alone
};

// One database of the daemon: the outbox in it, and all that is done there. Knows nothing of the
// others; what it shares with them is handed in. Runs on the io thread.
class Source {
 public:
    using OnFault = std::function<void()>;

    // config: the one at work, which a reload replaces in its place. on_fault: a task of ours ended
    // on a fault, which is logged; the process should stop.
    Source(
        SourceOptions options,
        asio::any_io_executor executor,
        const config::Config& config,
        StderrLog& log,
        outbox::Failpoints& failpoints,
        SourceMetrics& metrics,
        OnFault on_fault
    );
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;

    // Whether the schema fits and the namespace is its own. Blocks; throws CommandError for what a
    // person has to put right, StoreError for what may pass.
    void check() const { check(options_); }

    // Its configuration from here on; the generation before it drains. What check() has not passed
    // yet begins when it does.
    void serve(
        std::unique_ptr<outbox::Toolset> tools, std::shared_ptr<outbox::SharedLimits> limits
    );
    // check() has passed: begins what serve() gave it.
    void open();
    // Does the same in the background, and tries again until it passes.
    void keep_opening();
    // Samples, retention and what else runs beside the work.
    void start_upkeep();

    // First: drain. Second: do not wait.
    void stop();
    // Until the generations have ended; false: there is one that waits for a database that does
    // not answer, and whose attempts had the time they get.
    asio::awaitable<bool> join();
    void end_upkeep();
    asio::awaitable<void> join_upkeep() { return joined(upkeep_); }

    [[nodiscard]] const std::string& name() const { return options_.name; }
    [[nodiscard]] outbox::SqlDatabases& databases() { return databases_; }
    [[nodiscard]] SourceMetrics& metrics() { return metrics_; }
    [[nodiscard]] bool started() const;
    // Why it is not served, in one sentence; empty: it is.
    [[nodiscard]] std::optional<std::string> trouble() const;
    // The sentence is one for a person, and stays true until he does something.
    [[nodiscard]] bool refused() const { return refusal_.has_value(); }
    [[nodiscard]] bool opened() const { return opened_; }
    // check() was tried, and did not pass.
    [[nodiscard]] bool trouble_at_start() const { return trouble_.has_value(); }
    [[nodiscard]] ExitCode refusal() const { return refusal_.value_or(kDatabaseUnreachable); }
    // Nothing of ours is left; else the process has to end without it.
    [[nodiscard]] bool idle() const { return generations_.empty(); }
    // A check is under way, which has no effect.
    [[nodiscard]] bool checking() const { return checking_; }

 private:
    struct Next {
        std::unique_ptr<outbox::Toolset> tools;
        std::shared_ptr<outbox::SharedLimits> limits;
    };
    static void check(const SourceOptions& options);
    void begin(Next next);
    void escaped(const std::string& name, const std::string& what);
    asio::awaitable<void> run_generation(Generation& generation);
    asio::awaitable<void> try_opening();
    asio::awaitable<void> check_once();
    asio::awaitable<void> watch();
    asio::awaitable<void> sample();
    asio::awaitable<void> roll_up();
    asio::awaitable<void> look_at_horizon();
    asio::awaitable<void> keep_retention();
    asio::awaitable<std::int64_t> prune(
        outbox::pg::Prune what, std::chrono::milliseconds older_than
    );
    [[nodiscard]] bool answers() const;
    static asio::awaitable<void> joined(outbox::TaskGroup& group);

    SourceOptions options_;
    asio::any_io_executor executor_;
    const config::Config& config_;
    SourceLog log_;
    outbox::Failpoints& failpoints_;
    SourceMetrics& metrics_;
    OnFault on_fault_;
    outbox::pg::PgDatabases databases_;  // of tools of type sql
    // The last one is at work; those before it drain what began under an earlier configuration.
    std::list<std::unique_ptr<Generation>> generations_;
    std::optional<Next> next_;  // until it is open
    outbox::TaskGroup working_;
    outbox::TaskGroup upkeep_;
    outbox::Bell open_bell_;
    outbox::Bell watch_bell_;
    outbox::Bell sample_bell_;
    outbox::Bell retention_bell_;
    HorizonAge horizon_age_;
    int stop_requests_ = 0;
    bool opened_ = false;
    bool checking_ = false;
    bool ended_ = false;                  // the upkeep should return
    std::optional<std::string> trouble_;  // of the last check
    std::optional<ExitCode> refusal_;     // of the last check, when it takes a person
    asio::thread_pool checks_{1};
};

}  // namespace outboxd
