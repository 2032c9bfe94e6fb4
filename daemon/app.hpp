#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "daemon/admin_server.hpp"
#include "daemon/api_sources.hpp"
#include "daemon/command.hpp"
#include "daemon/embedded_postgres.hpp"
#include "daemon/log.hpp"
#include "daemon/metrics.hpp"
#include "daemon/source.hpp"
#include "daemon/source_faces.hpp"
#include "outbox/bell.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/task_group.hpp"
#include "tools/lane_gates.hpp"

namespace outboxd {

namespace asio = boost::asio;

struct AppOptions {
    config::Config config;
    config::Diagnostics diagnostics;  // what loading it found
    std::string dsn;  // of the only database; not looked at when the configuration has sources
    EmbeddedPostgres* postgres = nullptr;  // kept running beside the daemon; null: not ours
    std::function<void()> on_ready;        // may be empty
};

// The composition root of the daemon: owns everything, starts it from general to specific and
// stops it in reverse. The caller's thread runs the io context and with it every coroutine; lanes
// and the listener bring threads of their own (DESIGN, "Processes and threads").
// SIGTERM and SIGINT drain, a second one aborts; SIGHUP reads the configuration file again.
// Of several sources, one whose database is away or does not fit is tried again and again while the
// others are served; what they share is the tools' connections, gates and limits, and the process.
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
    using Toolsets = std::vector<std::unique_ptr<outbox::Toolset>>;  // one for each source
    void add_sources();
    void open_sources();
    void wait_for_database(Source& source);
    void serve_all(Toolsets toolsets);
    // Empty when anything is wrong; warnings are logged.
    Toolsets compile(const config::Config& config, config::Diagnostics& diagnostics);
    asio::awaitable<void> serve();
    asio::awaitable<void> until_started();
    asio::awaitable<void> handle_signals();
    asio::awaitable<void> end(Source& source);
    asio::awaitable<void> feed_watchdog();
    asio::awaitable<void> mind_postgres();
    void reload();
    bool try_reload();
    void warn_of_restart(const config::Config& config);
    void request_stop(int exit_code);
    void escaped(const std::string& name, const std::string& what);
    [[nodiscard]] AdminServer::Ready readiness() const;
    [[nodiscard]] bool any_started() const;
    [[nodiscard]] bool any_opened() const;
    [[nodiscard]] bool alone() const { return sources_.size() == 1; }

    AppOptions options_;
    StderrLog& log_;
    outbox::Failpoints failpoints_;
    asio::io_context io_{1};
    asio::signal_set signals_;
    Metrics metrics_;
    tools::LaneGates gates_;  // outlive the toolsets: a reload keeps what they know
    SourceFaces faces_;       // of agents that speak MCP
    AdminServer admin_;
    SourceApis api_;
    std::vector<std::unique_ptr<Source>> sources_;
    outbox::TaskGroup ending_;      // one for each source
    outbox::TaskGroup supporting_;  // everything else, to the end
    outbox::Bell stop_;
    outbox::Bell watchdog_bell_;
    outbox::Bell postgres_bell_;
    std::optional<CommandError> unserved_;  // why it ends, when no source can be served
    int stop_requests_ = 0;
    int exit_code_ = 0;
    bool ended_ = false;  // the supporting loops should return
};

}  // namespace outboxd
