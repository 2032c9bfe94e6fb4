#include "daemon/api_sources.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "daemon/api_request.hpp"
#include "outbox/json.hpp"

namespace outboxd {
namespace {

// The query without its source, as received: what is left is the source's own API's.
std::string without_source(std::string_view query) {
    std::string rest;
    while (!query.empty()) {
        const auto end = query.find('&');
        const auto pair = query.substr(0, end);
        if (pair != "source" && !pair.starts_with("source=")) {
            if (!rest.empty()) rest += '&';
            rest += pair;
        }
        query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    }
    return rest;
}

}  // namespace

SourceApis::SourceApis(
    const asio::any_io_executor& executor,
    std::vector<Database> databases,
    const config::Config& config
)
    : databases_(std::move(databases)) {
    for (const auto& database : databases_) apis_.emplace_back(executor, database.dsn, config);
}

void SourceApis::use(const config::Config& config) {
    for (auto& api : apis_) api.use(config);
}

void SourceApis::serve_on(AdminServer& server) {
    server.add({"GET", "/api/v1/sources", Access::read, [this](ServerRequest) {
                    return [](ServerResponse response) -> asio::awaitable<ServerResponse> {
                        co_return response;
                    }(names());
                }});
    if (apis_.size() == 1) return apis_.front().serve_on(server);
    for (const auto* method : {"GET", "POST"}) {
        const auto access = method == std::string_view("GET") ? Access::read : Access::write;
        server.add({method, "/api/v1/", access, [this](ServerRequest request) {
                        return answer(std::move(request));
                    }});
    }
}

asio::awaitable<ServerResponse> SourceApis::answer(ServerRequest request) {
    const auto wanted = request.parameter("source");
    std::string known;
    auto api = apis_.begin();
    for (const auto& database : databases_) {
        if (wanted == database.name) {
            request.query = without_source(request.query);
            auto answering = api->answer(std::move(request));
            co_return co_await std::move(answering);
        }
        known += (known.empty() ? "" : ", ") + database.name;
        ++api;
    }
    if (!wanted) {
        co_return ApiProblem(
            400,
            "Which source?",
            "This daemon serves several sources: " + known +
                ". Add ?source=NAME; the page takes it, too."
        )
            .response();
    }
    co_return ApiProblem(
        404, "Not found", "There is no source of that name; this daemon serves " + known
    )
        .response();
}

ServerResponse SourceApis::names() const {
    outbox::Json::Array items;
    for (const auto& database : databases_) {
        outbox::Json item;
        item.set("name", database.name);
        items.push_back(std::move(item));
    }
    outbox::Json document;
    document.set("items", std::move(items));
    document.set("next", outbox::Json());
    ServerResponse response;
    response.body = outbox::to_text(document);
    return response;
}

}  // namespace outboxd
