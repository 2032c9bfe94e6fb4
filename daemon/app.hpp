#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "daemon/admin_server.hpp"
#include "daemon/api.hpp"
#include "daemon/embedded_postgres.hpp"
#include "daemon/generation.hpp"
#include "daemon/horizon_age.hpp"
#include "daemon/log.hpp"
#include "daemon/mcp/http.hpp"
#include "daemon/mcp/pg_ledger.hpp"
#include "daemon/metrics.hpp"
#include "outbox/bell.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/pg/retention.hpp"
#include "outbox/pg/sql_database.hpp"
#include "outbox/task_group.hpp"
#include "tools/lane_gates.hpp"

namespace outboxd {

namespace asio = boost::asio;

struct AppOptions {
    config::Config config;
    config::Diagnostics diagnostics;  // what loading it found
    std::string dsn;
    EmbeddedPostgres* postgres = nullptr;  // kept running beside the daemon; null: not ours
    std::function<void()> on_ready;        // may be empty
};

// The composition root of the daemon: owns everything, starts it from general to specific and
// stops it in reverse. The caller's thread runs the io context and with it every coroutine; lanes
// and the listener bring threads of their own (DESIGN, "Processes and threads").
// SIGTERM and SIGINT drain, a second one aborts; SIGHUP reads the configuration file again.
class App {
 public:
    // OUTBOXD_FAILPOINTS counts only when the configuration allows it. Throws CommandError.
    App(AppOptions options, StderrLog& log);
    App(const App&) = delete;
    App& operator=(const App&) = delete;

    // Runs until it is told to stop; the exit code. Throws CommandError before it is ready.
    int run();

 private:
    void arm_failpoints();
    void wait_for_database();
    void check_database();
    void start_generation(const config::Config& config, std::unique_ptr<outbox::Toolset> tools);
    // Null when anything is wrong; warnings are logged.
    std::unique_ptr<outbox::Toolset> compile(
        const config::Config& config, config::Diagnostics& diagnostics
    );
    asio::awaitable<void> serve();
    asio::awaitable<void> until_started();
    asio::awaitable<void> run_generation(Generation& generation);
    asio::awaitable<void> handle_signals();
    asio::awaitable<void> sample();
    asio::awaitable<void> roll_up();
    asio::awaitable<void> look_at_horizon();
    asio::awaitable<void> keep_retention();
    asio::awaitable<std::int64_t> prune(
        outbox::pg::Prune what, std::chrono::milliseconds older_than
    );
    asio::awaitable<void> feed_watchdog();
    asio::awaitable<void> mind_postgres();
    void reload();
    bool try_reload();
    void warn_of_restart(const config::Config& config);
    void request_stop(int exit_code);
    void escaped(const std::string& name, const std::string& what);
    [[nodiscard]] std::optional<std::string> readiness() const;

    AppOptions options_;
    StderrLog& log_;
    outbox::Failpoints failpoints_;
    outbox::pg::PgDatabases databases_;  // of tools of type sql
    asio::io_context io_{1};
    asio::signal_set signals_;
    Metrics metrics_;
    tools::LaneGates gates_{&metrics_};  // outlive the generations: a reload keeps what they know
    mcp::PgLedger ledger_;               // of agents that speak MCP
    mcp::Face face_;
    mcp::HttpFace http_face_;
    AdminServer admin_;
    Api api_;
    // The last one is at work; those before it drain what began under an earlier configuration.
    std::list<std::unique_ptr<Generation>> generations_;
    outbox::TaskGroup working_;     // generations
    outbox::TaskGroup supporting_;  // everything else, to the end
    outbox::Bell stop_;
    outbox::Bell sample_bell_;
    HorizonAge horizon_age_;
    outbox::Bell retention_bell_;
    outbox::Bell watchdog_bell_;
    outbox::Bell postgres_bell_;
    int stop_requests_ = 0;
    int exit_code_ = 0;
    bool ended_ = false;  // the supporting loops should return
};

}  // namespace outboxd
