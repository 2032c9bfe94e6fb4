#include <optional>
#include <string>

#include "daemon/admin_server.hpp"
#include "daemon/metrics.hpp"
#include "tests/http/served.hpp"
#include "tests/support/catch.hpp"

using namespace tests;

namespace {

struct Admin {
    World world;
    outboxd::Metrics metrics{{"create_ticket"}, "default", {"1.2.3", "abc"}};
    std::optional<std::string> missing = std::nullopt;
    outboxd::AdminServer server{
        world.context.get_executor(),
        {.port = 0, .hosts = {"Outbox.internal"}},
        metrics,
        [this] { return missing; }
    };
    std::optional<Served<outboxd::AdminServer>> served;

    Admin() {
        REQUIRE_FALSE(server.listen());
        served.emplace(world, server);
    }
    std::string ask(const std::string& target, const std::string& method = "GET") {
        auto request = get(server.port(), target);
        request.method = method;
        return summary(world.send(request));
    }
    std::string ask_as(const std::string& hosts) {
        return talk(
            world, server.port(), "GET /livez HTTP/1.1\r\n" + hosts + "Connection: close\r\n\r\n"
        );
    }
};

}  // namespace

TEST_CASE("livez, readyz and metrics") {
    Admin admin;
    CHECK(admin.ask("/livez") == "200 alive\n");
    CHECK(admin.ask("/readyz") == "200 ready\n");
    admin.missing = "The database is not reachable.";
    CHECK_THAT(admin.ask("/readyz"), ContainsSubstring("The database is not reachable."));
    CHECK_THAT(admin.ask("/readyz"), ContainsSubstring("503 "));
    CHECK(admin.ask("/livez") == "200 alive\n");
    auto result = admin.world.send(get(admin.server.port(), "/metrics"));
    const auto& response = std::get<tools::HttpResponse>(result);
    CHECK(response.status == 200);
    CHECK(response.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
    CHECK(response.header("Cache-Control") == "no-store");
    CHECK_THAT(response.body, ContainsSubstring("outboxd_build_info{"));
    CHECK(admin.ask("/livez", "HEAD") == "200 ");
}

TEST_CASE("what is not there, and what cannot be done") {
    Admin admin;
    CHECK_THAT(admin.ask("/"), ContainsSubstring("404 {"));
    CHECK_THAT(admin.ask("/metrics/"), ContainsSubstring("404 "));
    auto request = post(admin.server.port(), "{}");
    request.target = "/metrics";
    auto result = admin.world.send(request);
    const auto& response = std::get<tools::HttpResponse>(result);
    CHECK(response.status == 405);
    CHECK(response.header("Allow") == "GET, HEAD");
    CHECK(response.header("Content-Type") == "application/problem+json");
}

TEST_CASE("a Host header that is not ours is refused") {
    Admin admin;
    auto port = std::to_string(admin.server.port());
    for (const auto& host :
         {"localhost",
          "LOCALHOST",
          "localhost:1",
          "127.0.0.1",
          "127.1.2.3",
          "[::1]",
          "outbox.internal",
          "OUTBOX.internal"}) {
        CAPTURE(host);
        CHECK_THAT(
            admin.ask_as("Host: " + std::string(host) + "\r\n"), ContainsSubstring("HTTP/1.1 200")
        );
        CHECK_THAT(
            admin.ask_as("Host: " + std::string(host) + ":" + port + "\r\n"),
            ContainsSubstring(std::string(host) == "localhost:1" ? "HTTP/1.1" : "HTTP/1.1 200")
        );
    }
    for (const auto* hosts :
         {"Host: rebound.example\r\n",
          "Host: localhost.rebound.example\r\n",
          "Host: 127.0.0.1.rebound.example\r\n",
          "Host: 127.evil\r\n",
          "Host: 10.0.0.1\r\n",
          "Host: \r\n",
          "",
          "Host: localhost\r\nHost: localhost\r\n",
          "Host: [\r\n",
          "Host: localhost@rebound.example\r\n"}) {
        CAPTURE(hosts);
        CHECK_THAT(admin.ask_as(hosts), ContainsSubstring("HTTP/1.1 4"));
    }
    CHECK_THAT(admin.ask_as("Host: rebound.example\r\n"), ContainsSubstring("HTTP/1.1 421"));
}
