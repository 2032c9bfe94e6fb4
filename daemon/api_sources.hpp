#pragma once

#include <list>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "daemon/admin_server.hpp"
#include "daemon/api.hpp"

namespace outboxd {

// The API of each source. With one alone it is just that. With several, every request says whose
// operations it means (source=NAME): equal ids are different operations in two databases, and a
// guess would steer the wrong one. GET /api/v1/sources names them.
class SourceApis {
 public:
    struct Database {
        std::string name;
        std::string dsn;
    };
    SourceApis(
        const asio::any_io_executor& executor,
        std::vector<Database> databases,
        const config::Config& config
    );
    SourceApis(const SourceApis&) = delete;
    SourceApis& operator=(const SourceApis&) = delete;

    void use(const config::Config& config);
    void serve_on(AdminServer& server);

 private:
    asio::awaitable<ServerResponse> answer(ServerRequest request);
    [[nodiscard]] ServerResponse names() const;

    std::vector<Database> databases_;
    std::list<Api> apis_;  // in the order of databases_
};

}  // namespace outboxd
