#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "daemon/admin_server.hpp"
#include "daemon/metrics.hpp"
#include "tests/http/served.hpp"
#include "tests/support/catch.hpp"

using namespace tests;

namespace {

using outboxd::Access;
using outboxd::ServerRequest;
using outboxd::ServerResponse;

asio::awaitable<ServerResponse> echo(ServerRequest request) {
    ServerResponse response;
    response.body = request.method + " " + request.path;
    co_return response;
}

asio::awaitable<ServerResponse> deeper(ServerRequest) {
    ServerResponse response;
    response.body = "deeper";
    co_return response;
}

struct TokenFile {
    std::string path;
    explicit TokenFile(const std::string& text, const std::string& name = "page")
        : path("/tmp/outboxd-token-test-" + name + "-" + std::to_string(::getpid())) {
        write(text);
    }
    ~TokenFile() { std::remove(path.c_str()); }
    TokenFile(const TokenFile&) = delete;
    TokenFile& operator=(const TokenFile&) = delete;
    void write(const std::string& text) const { std::ofstream(path) << text; }
};

struct Admin {
    World world;
    outboxd::Metrics metrics{{"create_ticket"}, {"default"}, {"1.2.3", "abc"}};
    std::optional<std::string> missing = std::nullopt;
    std::string note;
    outboxd::AdminServer server;
    std::optional<Served<outboxd::AdminServer>> served;

    explicit Admin(
        outboxd::AdminOptions options =
            {.host = "127.0.0.1", .port = 0, .hosts = {"Outbox.internal"}, .token_file = {}}
    )
        : server(world.context.get_executor(), std::move(options), metrics, [this] {
              return outboxd::AdminServer::Ready{.missing = missing, .note = note};
          }) {
        for (auto access : {Access::open, Access::read, Access::write, Access::agent}) {
            const auto* path = access == Access::open    ? "/open/"
                               : access == Access::read  ? "/read/"
                               : access == Access::write ? "/write/"
                                                         : "/agent/";
            for (const auto* method : {"GET", "POST"}) {
                server.add({method, path, access, echo});
            }
        }
        server.add({"GET", "/open/deeper/", Access::open, deeper});
        REQUIRE_FALSE(server.listen());
        served.emplace(world, server);
    }
    std::string ask(const std::string& target, const std::string& method = "GET") {
        auto request = get(server.port(), target);
        request.method = method;
        return summary(world.send(request));
    }
    // Status of a request with these headers, which may name no Host of their own.
    std::string status_of(const std::string& line, const std::string& headers) {
        auto answer = talk(
            world,
            server.port(),
            line + " HTTP/1.1\r\nHost: localhost:9464\r\n" + headers + "Connection: close\r\n\r\n"
        );
        return answer.substr(std::string("HTTP/1.1 ").size(), 3);
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
    admin.note = "orders: served\n";
    CHECK(admin.ask("/readyz") == "200 ready\norders: served\n");
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

TEST_CASE("the longest path that fits answers, and paths without a slash at the end fit alone") {
    Admin admin;
    CHECK(admin.ask("/open/a?b=c") == "200 GET /open/a");
    CHECK(admin.ask("/open/deeper/x") == "200 deeper");
    CHECK_THAT(admin.ask("/open"), ContainsSubstring("404 "));
    auto request = post(admin.server.port(), "{}");
    request.target = "/open/deeper/x";
    auto result = admin.world.send(request);
    CHECK(std::get<tools::HttpResponse>(result).header("Allow") == "GET, HEAD");
    CHECK_THAT(admin.ask("/livez/x"), ContainsSubstring("404 "));
}

TEST_CASE("without a token file reads are free on loopback and steering is off") {
    Admin admin;
    CHECK(admin.status_of("GET /read/x", "") == "200");
    CHECK(admin.status_of("GET /read/x", "Authorization: Bearer whatever\r\n") == "200");
    const std::string json = "Content-Type: application/json\r\nContent-Length: 0\r\n";
    CHECK(admin.status_of("POST /write/x", json) == "403");
    CHECK(admin.status_of("POST /write/x", json + "Authorization: Bearer \r\n") == "403");
    // The loader refuses such an address without a token; this holds if nobody asked the loader.
    Admin elsewhere({.host = "0.0.0.0", .port = 0, .hosts = {}, .token_file = {}});
    CHECK(elsewhere.status_of("GET /read/x", "") == "403");
    CHECK(elsewhere.status_of("GET /open/x", "") == "200");
}

TEST_CASE("with a token file reads and writes need the token") {
    TokenFile file("0123456789abcdefXYZ\n");
    Admin admin({.host = "127.0.0.1", .port = 0, .hosts = {}, .token_file = file.path});
    const std::string json = "Content-Type: application/json\r\nContent-Length: 0\r\n";
    CHECK(admin.status_of("GET /open/x", "") == "200");
    CHECK(admin.status_of("GET /livez", "") == "200");
    for (const auto* right :
         {"Authorization: Bearer 0123456789abcdefXYZ\r\n",
          "authorization: bearer 0123456789abcdefXYZ\r\n"}) {
        CAPTURE(right);
        CHECK(admin.status_of("GET /read/x", right) == "200");
        CHECK(admin.status_of("POST /write/x", json + right) == "200");
    }
    for (const auto* wrong :
         {"",
          "Authorization: Bearer 0123456789abcdefXY\r\n",
          "Authorization: Bearer 0123456789abcdefXYZ0\r\n",
          "Authorization: Bearer 0123456789abcdefxyz\r\n",
          "Authorization: Bearer \r\n",
          "Authorization: Basic 0123456789abcdefXYZ\r\n",
          "Authorization: 0123456789abcdefXYZ\r\n",
          "Authorization: Bearer 0123456789abcdefXYZ\r\nAuthorization: Bearer x\r\n",
          "Cookie: token=0123456789abcdefXYZ\r\n"}) {
        CAPTURE(wrong);
        CHECK(admin.status_of("GET /read/x", wrong) == "401");
        CHECK(admin.status_of("POST /write/x", json + wrong) == "401");
    }
    const std::string old = "Authorization: Bearer 0123456789abcdefXYZ\r\n";
    file.write("another-token-of-some-length");
    CHECK(admin.status_of("GET /read/x", old) == "401");
    CHECK(
        admin.status_of("GET /read/x", "Authorization: Bearer another-token-of-some-length\r\n") ==
        "200"
    );
    for (const auto* nothing :
         {"", "\n", "short", "with spaces in the middle of it", "0123456789abcdef\n\n\nx"}) {
        CAPTURE(nothing);
        file.write(nothing);
        CHECK(admin.status_of("GET /read/x", "Authorization: Bearer \r\n") == "503");
        CHECK(admin.server.listen().value_or("").find(file.path) != std::string::npos);
    }
}

TEST_CASE("agents have a token of their own, which opens nothing else; without one, the page's") {
    TokenFile page("0123456789abcdefXYZ\n");
    TokenFile own("agents-0123456789abcdef\n", "agents");
    const std::string json = "Content-Type: application/json\r\nContent-Length: 0\r\n";
    const std::string as_page = json + "Authorization: Bearer 0123456789abcdefXYZ\r\n";
    const std::string as_agent = json + "Authorization: Bearer agents-0123456789abcdef\r\n";
    const auto statuses = [&](Admin& admin, const std::string& who) {
        return admin.status_of("GET /read/x", who) + " " + admin.status_of("POST /write/x", who) +
               " " + admin.status_of("POST /agent/x", who);
    };
    {
        Admin both({.port = 0, .hosts = {}, .token_file = page.path, .agent_token_file = own.path});
        CHECK(statuses(both, as_page) == "200 200 401");
        CHECK(statuses(both, as_agent) == "401 401 200");
        CHECK(statuses(both, json) == "401 401 401");
        CHECK(
            both.status_of("POST /agent/x", as_agent + "Origin: http://evil.example\r\n") == "403"
        );
        own.write("short");
        CHECK(statuses(both, as_agent) == "401 401 503");
        CHECK(both.server.listen().value_or("").find("mcp.token_file " + own.path) == 0);
        own.write("agents-0123456789abcdef\n");
    }
    Admin alone({.port = 0, .hosts = {}, .token_file = {}, .agent_token_file = own.path});
    CHECK(statuses(alone, as_agent) == "200 403 200");
    CHECK(statuses(alone, json) == "200 403 401");
    Admin shared({.port = 0, .hosts = {}, .token_file = page.path});
    CHECK(statuses(shared, as_page) == "200 200 200");
    Admin none({.port = 0, .hosts = {}, .token_file = {}});
    CHECK(statuses(none, as_page) == "200 403 403");
}

TEST_CASE("another site's page cannot write, whatever token it holds") {
    TokenFile file("0123456789abcdefXYZ");
    Admin admin({.host = "127.0.0.1", .port = 0, .hosts = {}, .token_file = file.path});
    const std::string token = "Authorization: Bearer 0123456789abcdefXYZ\r\nContent-Length: 0\r\n";
    const std::string json = token + "Content-Type: application/json\r\n";
    for (const auto* ours :
         {"",
          "Sec-Fetch-Site: same-origin\r\n",
          "Sec-Fetch-Site: none\r\n",
          "Origin: http://localhost:9464\r\n",
          "Origin: https://LOCALHOST:9464\r\nSec-Fetch-Site: same-origin\r\n"}) {
        CAPTURE(ours);
        CHECK(admin.status_of("POST /write/x", json + ours) == "200");
    }
    for (const auto* theirs :
         {"Sec-Fetch-Site: cross-site\r\n",
          "Sec-Fetch-Site: same-site\r\n",
          "Sec-Fetch-Site: \r\n",
          "Sec-Fetch-Site: none\r\nSec-Fetch-Site: none\r\n",
          "Origin: http://evil.example\r\n",
          "Origin: http://localhost:9465\r\n",
          "Origin: http://localhost\r\n",
          "Origin: null\r\n",
          "Origin: localhost:9464\r\n",
          "Origin: http://evil.example/://localhost:9464\r\n",
          "Origin: http://localhost:9464\r\nOrigin: http://localhost:9464\r\n",
          "Origin: http://localhost:9464\r\nSec-Fetch-Site: cross-site\r\n"}) {
        CAPTURE(theirs);
        CHECK(admin.status_of("POST /write/x", json + theirs) == "403");
        CHECK(admin.status_of("GET /write/x", token + theirs) == "403");
    }
    for (const auto* type :
         {"",
          "Content-Type: text/plain\r\n",
          "Content-Type: application/x-www-form-urlencoded\r\n",
          "Content-Type: multipart/form-data\r\n",
          "Content-Type: text/plain; application/json\r\n"}) {
        CAPTURE(type);
        CHECK(admin.status_of("POST /write/x", token + type) == "415");
    }
    CHECK(
        admin.status_of(
            "POST /write/x", token + "Content-Type: Application/JSON ; charset=utf-8\r\n"
        ) == "200"
    );
}

TEST_CASE("every answer carries the headers that keep a browser honest") {
    Admin admin;
    for (const auto* path : {"/livez", "/open/x", "/write/x", "/nothing"}) {
        CAPTURE(path);
        auto result = admin.world.send(get(admin.server.port(), path));
        const auto& response = std::get<tools::HttpResponse>(result);
        CHECK(response.header("X-Content-Type-Options") == "nosniff");
        CHECK(response.header("Cache-Control") == "no-store");
        CHECK(response.header("Referrer-Policy") == "no-referrer");
        CHECK(response.header("X-Frame-Options") == "DENY");
        const auto policy = response.header("Content-Security-Policy").value_or("");
        CHECK_THAT(policy, ContainsSubstring("default-src 'none'"));
        CHECK_THAT(policy, ContainsSubstring("frame-ancestors 'none'"));
        CHECK(policy.find("unsafe") == std::string::npos);
    }
}
