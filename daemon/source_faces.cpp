#include "daemon/source_faces.hpp"

#include <memory>
#include <utility>

#include "daemon/api_request.hpp"
#include "daemon/command.hpp"

namespace outboxd {
namespace {

// What agents are offered; the loader has refused what cannot be.
std::shared_ptr<const mcp::Offer> offer_of(const config::Config& config) {
    auto made = mcp::Offer::make(config, {});
    if (!made.offer) throw CommandError(kConfiguration, made.problem);
    return std::move(made.offer);
}

}  // namespace

SourceFaces::One::One(
    const asio::any_io_executor& executor,
    const SourceApis::Database& database,
    outbox::Log& log,
    const config::Config& config
)
    : name(database.name),
      ledger(database.dsn, executor),
      face(ledger, log, offer_of(config), config.mcp.wait),
      http(executor, face, config.mcp.run_header) {}

SourceFaces::SourceFaces(
    const asio::any_io_executor& executor,
    const std::vector<SourceApis::Database>& databases,
    outbox::Log& log,
    const config::Config& config
) {
    for (const auto& database : databases) all_.emplace_back(executor, database, log, config);
}

void SourceFaces::configure(const config::Config& config) {
    for (auto& one : all_) {
        one.face.configure(offer_of(config), config.mcp.wait);
        one.http.configure(config.mcp.run_header);
    }
}

void SourceFaces::serve_on(AdminServer& server) {
    server.add({"POST", "/mcp", Access::agent, [this](ServerRequest request) {
                    return post(std::move(request));
                }});
}

asio::awaitable<ServerResponse> SourceFaces::post(ServerRequest request) {
    const auto wanted = request.parameter("source");
    std::string known;
    for (auto& one : all_) {
        if (all_.size() == 1 || wanted == one.name) {
            auto answering = one.http.post(std::move(request));
            co_return co_await std::move(answering);
        }
        known += (known.empty() ? "" : ", ") + one.name;
    }
    co_return ApiProblem(
        wanted ? 404 : 400,
        "Which source?",
        "This daemon serves several sources: " + known +
            ". The address says which: /mcp?source=NAME."
    )
        .response();
}

}  // namespace outboxd
