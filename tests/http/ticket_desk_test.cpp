#include <boost/asio/co_spawn.hpp>
#include <string>

#include "daemon/ticket_desk.hpp"
#include "tests/http/served.hpp"
#include "tests/support/catch.hpp"

using namespace tests;
using outbox::Deadline;

namespace {

struct Desk {
    World world;
    outboxd::TicketDesk desk{world.context.get_executor()};
    std::optional<Served<outboxd::TicketDesk>> served;

    Desk() {
        REQUIRE_FALSE(desk.listen(0));
        served.emplace(world, desk);
    }
    tools::HttpRequest ticket(const std::string& title, const std::string& reference) {
        auto request = post(
            desk.port(), R"({"title":")" + title + R"(","external_ref":")" + reference + R"("})"
        );
        request.target = "/tickets";
        return request;
    }
    std::string open(const std::string& title, const std::string& reference) {
        return summary(world.send(ticket(title, reference), Deadline::after(500ms)));
    }
    std::string ask(const std::string& target) {
        return summary(world.send(get(desk.port(), target)));
    }
    std::string tell(const std::string& target, const std::string& body) {
        auto request = post(desk.port(), body);
        request.target = target;
        return summary(world.send(request));
    }
    std::string count(const std::string& query = "") {
        auto answer = ask("/count" + query);
        return answer.substr(0, answer.find(','));
    }
};

}  // namespace

TEST_CASE("the desk opens a ticket for every request: it really makes duplicates") {
    Desk desk;
    auto request = desk.ticket("broken", "k-1");
    request.headers.emplace_back("Idempotency-Key", "k-1");
    CHECK_THAT(summary(desk.world.send(request)), ContainsSubstring("201 {"));
    CHECK_THAT(summary(desk.world.send(request)), ContainsSubstring("\"id\":2"));
    CHECK(desk.count() == "200 {\"count\":2");
    CHECK(desk.count("?external_ref=k-1") == "200 {\"count\":2");
    CHECK(desk.count("?title=other") == "200 {\"count\":0");
    CHECK(desk.tell("/settings", R"({"idempotency": true})") == "200 {}");
    summary(desk.world.send(request));
    CHECK_THAT(summary(desk.world.send(request)), ContainsSubstring("\"id\":3"));
    CHECK(desk.count() == "200 {\"count\":3");
}

TEST_CASE("the desk lists, shows and closes") {
    Desk desk;
    for (const auto* reference : {"a", "b", "a", "a"}) desk.open("x", reference);
    auto page = desk.ask("/tickets?external_ref=a&limit=2");
    CHECK_THAT(page, ContainsSubstring("\"id\":1"));
    CHECK_THAT(page, ContainsSubstring("\"id\":3"));
    CHECK_THAT(page, ContainsSubstring("\"has_more\":true,\"next_cursor\":\"3\""));
    page = desk.ask("/tickets?external_ref=a&limit=2&cursor=3");
    CHECK_THAT(page, ContainsSubstring("\"id\":4"));
    CHECK_THAT(page, ContainsSubstring("\"has_more\":false,\"next_cursor\":null"));
    CHECK_THAT(desk.ask("/tickets?external_ref=c"), ContainsSubstring("{\"tickets\":[]"));
    CHECK_THAT(desk.tell("/tickets/2/close", ""), ContainsSubstring("\"state\":\"closed\""));
    CHECK_THAT(desk.ask("/tickets/2"), ContainsSubstring("\"state\":\"closed\""));
    CHECK_THAT(desk.ask("/tickets/5"), ContainsSubstring("404 "));
    CHECK_THAT(desk.tell("/tickets", "{}"), ContainsSubstring("422 "));
    CHECK_THAT(desk.tell("/tickets", "no JSON"), ContainsSubstring("422 "));
}

TEST_CASE("the desk misbehaves as it is told") {
    Desk desk;
    auto mode = [&](const std::string& rule) { CHECK(desk.tell("/mode", rule) == "200 {}"); };
    mode(R"({"behaviour": "drop_before", "next": 1})");
    CHECK(desk.open("x", "a") == "sent reset");
    CHECK(desk.count() == "200 {\"count\":0");
    mode(R"({"behaviour": "drop_after", "external_ref": "b"})");
    CHECK_THAT(desk.open("x", "a"), ContainsSubstring("201 "));
    CHECK(desk.open("x", "b") == "sent reset");
    CHECK(desk.open("x", "b") == "sent reset");
    CHECK(desk.count("?external_ref=b") == "200 {\"count\":2");
    mode(R"({"behaviour": "error_after", "title": "y", "next": 1})");
    CHECK_THAT(desk.open("y", "c"), ContainsSubstring("500 "));
    CHECK_THAT(desk.open("y", "c"), ContainsSubstring("201 "));
    CHECK(desk.count("?external_ref=c") == "200 {\"count\":2");
    mode(R"({"behaviour": "error_before", "next": 1})");
    CHECK_THAT(desk.open("z", "d"), ContainsSubstring("500 "));
    CHECK(desk.count("?external_ref=d") == "200 {\"count\":0");
    mode(R"({"behaviour": "refuse", "external_ref": "e", "next": 1})");
    CHECK_THAT(desk.open("z", "e"), ContainsSubstring("422 {\"code\":\"refused\""));
    mode(R"({"behaviour": "refuse", "status": 429, "retry_after": 3, "next": 1})");
    auto result = desk.world.send(desk.ticket("z", "e"));
    CHECK(std::get<tools::HttpResponse>(result).header("Retry-After") == "3");
    CHECK(desk.count("?external_ref=e") == "200 {\"count\":0");
    mode(R"({"behaviour": "refuse", "on": "list", "status": 503, "next": 1})");
    CHECK_THAT(desk.ask("/tickets"), ContainsSubstring("503 "));
    CHECK_THAT(desk.ask("/tickets"), ContainsSubstring("200 "));
    CHECK_THAT(desk.tell("/mode", R"({"behaviour": "dance"})"), ContainsSubstring("422 "));
    CHECK_THAT(desk.tell("/mode", "{"), ContainsSubstring("422 "));
}

TEST_CASE("the desk is slow, or holds its answer until it is released") {
    Desk desk;
    CHECK(
        desk.tell("/mode", R"({"behaviour": "delay_after", "delay_ms": 700, "next": 1})") ==
        "200 {}"
    );
    CHECK(desk.open("x", "a") == "sent timeout");
    CHECK(desk.count("?external_ref=a") == "200 {\"count\":1");
    CHECK(
        desk.tell("/mode", R"({"behaviour": "delay_before", "delay_ms": 50, "next": 1})") ==
        "200 {}"
    );
    CHECK_THAT(desk.open("x", "b"), ContainsSubstring("201 "));

    CHECK(desk.tell("/mode", R"({"behaviour": "hold_after", "external_ref": "c"})") == "200 {}");
    std::string told = "nothing";
    auto ended = [&](const std::exception_ptr&, tools::HttpResult result) {
        told = summary(result);
    };
    asio::co_spawn(
        desk.world.context,
        desk.world.client->send(desk.ticket("x", "c"), Deadline::after(10s)),
        ended
    );
    desk.world.run_for(100ms);
    CHECK(told == "nothing");
    CHECK(desk.count("?external_ref=c") == "200 {\"count\":1");
    CHECK_THAT(desk.ask("/count"), ContainsSubstring("\"held\":1"));
    CHECK(desk.tell("/release", "") == "200 {}");
    desk.world.run_for(100ms);
    CHECK_THAT(told, ContainsSubstring("201 "));
}
