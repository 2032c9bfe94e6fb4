#include "tools/listing.hpp"

#include "tests/unit/tools/tool_fixture.hpp"

using namespace test;
using outbox::Absent;
using outbox::Cause;
using outbox::Conflict;
using outbox::Found;
using outbox::Inconclusive;
using outbox::Pending;

namespace {

// A help desk's listing, as in the contract.
std::string desk(
    const std::string& more, const std::string& query = "external_ref: '{{ operation.key }}'"
) {
    return "    execute: { type: http, method: POST, url: 'https://h.example/t', json: { "
           "external_ref: '{{ operation.key }}' } }\n"
           "    reconcile: { type: http, method: GET, url: 'https://h.example/t', query: { " +
           query +
           " },\n"
           "      items: /tickets, match: { /ref: '{{ operation.key }}' }, must_equal: { /title: "
           "'{{ arguments.title }}' },\n"
           "      result: { id: /id }" +
           more + " }\n";
}

const std::string kArguments = R"({"title": "a"})";
const std::string kMine = R"({"id": "T-1", "ref": "key-1", "title": "a"})";
const std::string kOther = R"({"id": "T-9", "ref": "key-9", "title": "a"})";

std::string page(const std::string& items, const std::string& rest = {}) {
    return "{\"tickets\": [" + items + "]" + (rest.empty() ? "" : ", " + rest) + "}";
}

}  // namespace

TEST_CASE("one match is found, two are a conflict, none is absent") {
    HttpToolFixture fixture(desk(""));
    fixture.sender->answer(200, page(kOther + "," + kMine));
    const auto found = fixture.ask(kArguments);
    CHECK(outbox::to_text(get<Found>(found).result) == R"({"id":"T-1"})");
    CHECK(fixture.sender->requests[0].target == "/t?external_ref=key-1");
    fixture.sender->answer(200, page(kMine + R"(, {"id": "T-2", "ref": "key-1", "title": "a"})"));
    CHECK(get<Conflict>(fixture.ask(kArguments)).error.code == "found_twice");
    fixture.sender->answer(200, page(kOther));
    get<Absent>(fixture.ask(kArguments));
    fixture.sender->answer(200, page(""));
    get<Absent>(fixture.ask(kArguments));
    fixture.sender->answer(200, page(R"({"id": "T-1", "ref": "key-1", "title": "b"})"));
    CHECK(get<Conflict>(fixture.ask(kArguments)).error.code == "different");
}

TEST_CASE("a listing that failed or is not understood is inconclusive") {
    HttpToolFixture fixture(desk(""));
    for (const int status : {202, 203, 206, 226, 299, 301, 400, 401, 404, 429, 500}) {
        fixture.sender->answer(status, page(""));
        get<Inconclusive>(fixture.ask(kArguments));
    }
    for (const auto* body :
         {"", "<html>", "[]", "{}", R"({"tickets": null})", R"({"tickets": {}})"}) {
        INFO(body);
        fixture.sender->answer(200, body);
        CHECK(get<Inconclusive>(fixture.ask(kArguments)).error.code == "unreadable");
    }
    fixture.sender->truncated(200, "{\"tickets\": [");
    get<Inconclusive>(fixture.ask(kArguments));
    fixture.sender->fail(true, Cause::timeout, "timeout");
    CHECK(get<Inconclusive>(fixture.ask(kArguments)).error.code == "timeout");
}

TEST_CASE("a page that is not all there is proves nothing") {
    HttpToolFixture limited(desk("", "limit: 2"));
    limited.sender->answer(200, page(kOther + "," + kOther));
    CHECK(get<Inconclusive>(limited.ask(kArguments)).error.code == "listing_incomplete");
    limited.sender->answer(200, page(kOther));
    get<Absent>(limited.ask(kArguments));
    HttpToolFixture fixture(desk(""));
    fixture.sender->answer(200, page(kOther), "Link", "</t?p=2>; rel=\"next\"");
    CHECK(get<Inconclusive>(fixture.ask(kArguments)).error.code == "listing_incomplete");
}

TEST_CASE("verdicts are tried before the listing, on the first page only") {
    HttpToolFixture fixture(
        desk(", verdicts: [ { when: { status: 404 }, then: absent }, { when: { body: { /busy: true "
             "} }, then: pending } ],"
             " paginate: { from: 'body:/next', to: 'query:cursor' }")
    );
    fixture.sender->answer(404);
    get<Absent>(fixture.ask(kArguments));
    fixture.sender->answer(200, page("", R"("busy": true)"));
    get<Pending>(fixture.ask(kArguments));
    fixture.sender->answer(200, page(kMine));
    get<Found>(fixture.ask(kArguments));
    fixture.sender->answer(200, page(kOther, R"("next": "c2")")).answer(404);
    CHECK(get<Inconclusive>(fixture.ask(kArguments)).error.code == "status_404");
}

TEST_CASE("pages by cursor") {
    HttpToolFixture fixture(
        desk(", paginate: { from: 'body:/next_cursor', to: 'query:cursor', more: { /has_more: true "
             "}, max_pages: 3 }")
    );
    fixture.sender->answer(200, page(kOther, R"("has_more": true, "next_cursor": "c 2")"))
        .answer(200, page(kMine, R"("has_more": true, "next_cursor": "c3")"))
        .answer(200, page("", R"("has_more": false, "next_cursor": "c4")"));
    get<Found>(fixture.ask(kArguments));
    REQUIRE(fixture.sender->requests.size() == 3);
    CHECK(fixture.sender->requests[1].target == "/t?external_ref=key-1&cursor=c%202");
    CHECK(fixture.sender->requests[2].target == "/t?external_ref=key-1&cursor=c3");

    SECTION("two matches on different pages") {
        fixture.sender->answer(200, page(kMine, R"("has_more": true, "next_cursor": "2")"))
            .answer(
                200, page(R"({"id": "T-2", "ref": "key-1", "title": "a"})", R"("has_more": false)")
            );
        get<Conflict>(fixture.ask(kArguments));
    }
    SECTION("the same item on overlapping pages is no second one") {
        fixture.sender->answer(200, page(kMine, R"("has_more": true, "next_cursor": "2")"))
            .answer(200, page(kMine, R"("has_more": false)"));
        get<Found>(fixture.ask(kArguments));
    }
    SECTION("the page limit is inconclusive, not absent") {
        for (int i = 0; i < 3; ++i) {
            fixture.sender->answer(
                200,
                page(kOther, R"("has_more": true, "next_cursor": "c)" + std::to_string(i) + "\"")
            );
        }
        CHECK(get<Inconclusive>(fixture.ask(kArguments)).error.code == "page_limit");
    }
    SECTION("a later page that fails is inconclusive, unless it was found already") {
        fixture.sender->answer(200, page(kOther, R"("has_more": true, "next_cursor": "2")"))
            .answer(500);
        CHECK(get<Inconclusive>(fixture.ask(kArguments)).error.code == "status_500");
        fixture.sender->answer(200, page(kMine, R"("has_more": true, "next_cursor": "2")"))
            .answer(500);
        const auto found = fixture.ask(kArguments);
        CHECK_THAT(
            get<Found>(found).note, ContainsSubstring("the rest of the listing was not read")
        );
    }
    SECTION("more without a cursor, and a cursor that stands still") {
        fixture.sender->answer(200, page(kOther, R"("has_more": true, "next_cursor": null)"));
        CHECK(get<Inconclusive>(fixture.ask(kArguments)).error.code == "listing_incomplete");
        fixture.sender->answer(200, page(kOther, R"("has_more": true, "next_cursor": "2")"))
            .answer(200, page(kOther, R"("has_more": true, "next_cursor": "2")"));
        CHECK(get<Inconclusive>(fixture.ask(kArguments)).error.code == "listing_incomplete");
    }
    SECTION("no more is the end") {
        fixture.sender->answer(200, page(kOther, R"("has_more": false, "next_cursor": "2")"));
        get<Absent>(fixture.ask(kArguments));
    }
}

TEST_CASE("pages by link, last item, offset and page number") {
    HttpToolFixture link(desk(", paginate: { from: 'header:link', to: url }"));
    link.sender->answer(200, page(kOther), "Link", "<https://h.example/t?after=9>; rel=\"next\"")
        .answer(200, page(""));
    get<Absent>(link.ask(kArguments));
    CHECK(link.sender->requests[1].target == "/t?after=9");
    link.sender->answer(
        200, page(kOther), "Link", "<https://evil.example/t?after=9>; rel=\"next\""
    );
    CHECK(get<Inconclusive>(link.ask(kArguments)).error.code == "foreign_page");
    CHECK(link.sender->requests.size() == 3);

    HttpToolFixture last(desk(", paginate: { from: 'last:/id', to: 'query:after' }"));
    last.sender->answer(200, page(kOther)).answer(200, page(""));
    get<Absent>(last.ask(kArguments));
    CHECK(last.sender->requests[1].target == "/t?external_ref=key-1&after=T-9");

    HttpToolFixture offset(desk(", paginate: { from: offset, to: 'query:offset' }"));
    offset.sender->answer(200, page(kOther + "," + kOther))
        .answer(200, page(kOther))
        .answer(200, page(""));
    get<Absent>(offset.ask(kArguments));
    CHECK(offset.sender->requests[2].target == "/t?external_ref=key-1&offset=3");

    HttpToolFixture number(desk(", paginate: { from: page, to: 'query:page' }"));
    number.sender->answer(200, page(kOther)).answer(200, page(""));
    get<Absent>(number.ask(kArguments));
    CHECK(number.sender->requests[1].target == "/t?external_ref=key-1&page=2");
}

TEST_CASE("a secret in the query goes along to the next page") {
    HttpToolFixture fixture(
        "    execute: { type: http, method: POST, url: 'https://h.example/t', json: { r: '{{ "
        "operation.key }}' } }\n"
        "    reconcile: { type: http, url: 'https://h.example/t', credential: c, items: '', match: "
        "{ /ref: '{{ operation.key }}' },"
        " paginate: { from: 'header:link', to: url } }\n",
        "credentials: { c: { kind: query, name: token, value: s3 } }"
    );
    fixture.sender->answer(200, "[" + kOther + "]", "Link", "</t?p=2>; rel=next").answer(200, "[]");
    get<Absent>(fixture.ask());
    CHECK(fixture.sender->requests[0].target == "/t?token=s3");
    CHECK(fixture.sender->requests[1].target == "/t?p=2&token=s3");
}
