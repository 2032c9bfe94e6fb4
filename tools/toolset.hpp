#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <vector>

#include "config/config.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/log.hpp"
#include "outbox/observer.hpp"
#include "outbox/sql_database.hpp"
#include "outbox/tool.hpp"
#include "tools/lane_gates.hpp"

namespace tools {

// What adapters use; all of it outlives the toolset.
struct Services {
    boost::asio::any_io_executor executor;  // the io thread's
    outbox::Failpoints& failpoints;
    outbox::Log& log;
    outbox::Observer* observer = nullptr;       // null: nobody counts
    outbox::SqlDatabases* databases = nullptr;  // null: tools of type sql cannot be built
    LaneGates* gates = nullptr;                 // null: gates that know of no earlier toolset
};

// Compiles every tool of the configuration. All mistakes and lints go to the diagnostics, which may
// hold those of load() already: a place that has an error gets no second one. Never throws.
void check_toolset(const config::Config& config, config::Diagnostics& diagnostics);

// The same, and the adapters themselves: a toolset for each of the databases, for the outboxes in
// them. They share what the outside sees (connections, tokens, gates); what a tool does on the
// outbox's own database it does on the one of its toolset. Empty when anything is wrong.
[[nodiscard]] std::vector<std::unique_ptr<outbox::Toolset>> build_toolsets(
    const config::Config& config,
    config::Diagnostics& diagnostics,
    const Services& services,
    const std::vector<outbox::SqlDatabases*>& databases
);

// For one database, that of the services; null when anything is wrong.
[[nodiscard]] std::unique_ptr<outbox::Toolset> build_toolset(
    const config::Config& config, config::Diagnostics& diagnostics, Services services
);

}  // namespace tools
