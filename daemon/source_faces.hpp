#pragma once

#include <list>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "daemon/admin_server.hpp"
#include "daemon/api_sources.hpp"
#include "daemon/mcp/http.hpp"
#include "daemon/mcp/pg_ledger.hpp"
#include "outbox/log.hpp"

namespace outboxd {

// What agents meet on /mcp, for each source; with several a server's address says which:
// /mcp?source=NAME.
class SourceFaces {
 public:
    // Throws CommandError when the tools cannot be offered.
    SourceFaces(
        const asio::any_io_executor& executor,
        const std::vector<SourceApis::Database>& databases,
        outbox::Log& log,
        const config::Config& config
    );
    SourceFaces(const SourceFaces&) = delete;
    SourceFaces& operator=(const SourceFaces&) = delete;

    // A reload.
    void configure(const config::Config& config);
    void serve_on(AdminServer& server);
    // The process stops: whoever waits is told what is known.
    void stop() {
        for (auto& one : all_) one.http.stop();
    }

 private:
    struct One {
        One(const asio::any_io_executor& executor,
            const SourceApis::Database& database,
            outbox::Log& log,
            const config::Config& config);
        std::string name;
        mcp::PgLedger ledger;
        mcp::Face face;
        mcp::HttpFace http;
    };

    asio::awaitable<ServerResponse> post(ServerRequest request);

    std::list<One> all_;
};

}  // namespace outboxd
