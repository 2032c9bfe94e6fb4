#include "tools/url_template.hpp"

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/link_header.hpp"

using namespace test;

namespace {

struct Compiled {
    config::Diagnostics diagnostics;
    std::optional<tools::UrlTemplate> url;
};

Compiled compile(const std::string& url) {
    Compiled result;
    tools::CompileContext context{.diagnostics = result.diagnostics};
    result.url = tools::UrlTemplate::compile({.value = url, .mark = {}}, context);
    return result;
}

std::string rendered(const std::string& url, const std::string& id) {
    auto compiled = compile(url);
    INFO(url << "\n" << all_of(compiled.diagnostics));
    REQUIRE(compiled.url.has_value());
    REQUIRE_FALSE(compiled.diagnostics.has_errors());
    const auto call = call_of(Json(Json::Object{{"id", Json(id)}}));
    const auto target = compiled.url->render({call});
    return target.ok() ? target.value() : "refused: " + target.error().code;
}

}  // namespace

TEST_CASE("the target of a request") {
    CHECK(rendered("https://h.example", "x") == "/");
    CHECK(rendered("https://h.example/a/b/", "x") == "/a/b/");
    CHECK(rendered("https://h.example/t/{{ arguments.id }}/close", "T-1") == "/t/T-1/close");
    CHECK(rendered("https://h.example/t/x{{ arguments.id }}.json", "1") == "/t/x1.json");
    CHECK(rendered("https://h.example/{{ arguments.id }}{{ operation.key }}", "a") == "/akey-1");
    CHECK(rendered("https://h.example/?q={{ arguments.id }}&r=1", "a&b=c") == "/?q=a%26b%3Dc&r=1");
    CHECK(rendered("https://h.example?q=a/b", "x") == "/?q=a/b");
}

TEST_CASE("a rendered value cannot make or leave a segment") {
    const std::string url = "https://h.example/t/{{ arguments.id }}/close";
    CHECK(rendered(url, "a/b") == "/t/a%2Fb/close");
    CHECK(rendered(url, "../../admin") == "/t/..%2F..%2Fadmin/close");
    CHECK(rendered(url, "..%2fadmin") == "/t/..%252fadmin/close");
    CHECK(rendered(url, "x?y#z") == "/t/x%3Fy%23z/close");
    CHECK(rendered(url, "") == "refused: invalid_argument");
    CHECK(rendered(url, ".") == "refused: invalid_argument");
    CHECK(rendered(url, "..") == "refused: invalid_argument");
    CHECK(rendered("https://h.example/.{{ arguments.id }}", ".") == "refused: invalid_argument");
    CHECK(rendered("https://h.example/a{{ arguments.id }}", "") == "/a");
}

TEST_CASE("origins") {
    const auto origin = [](const std::string& url) {
        const auto compiled = compile(url);
        return compiled.url ? tools::origin_text(compiled.url->origin())
                            : all_of(compiled.diagnostics);
    };
    CHECK(origin("https://Desk.Example.com/x") == "https://desk.example.com:443");
    CHECK(origin("http://127.0.0.1:8080") == "http://127.0.0.1:8080");
    CHECK(origin("http://[::1]:9/") == "http://[::1]:9");
    CHECK_THAT(origin("ftp://h/x"), ContainsSubstring("http:// or https://"));
    for (const auto* port : {"0", "65536", "99999", "4294967376"}) {
        CHECK_THAT(
            origin("http://127.0.0.1:" + std::string(port) + "/"), ContainsSubstring("1 to 65535")
        );
    }
    CHECK_THAT(origin("/just/a/path"), ContainsSubstring("not a valid URL"));
    CHECK_THAT(origin("https://u:p@h/x"), ContainsSubstring("user name"));
    CHECK_THAT(origin("https://h/a b"), ContainsSubstring("not a valid URL"));
    CHECK_THAT(origin("https://h/a#b"), ContainsSubstring("#fragment"));
    CHECK_THAT(origin(""), ContainsSubstring("missing"));
}

TEST_CASE("a template in scheme, host or port does not load") {
    for (const auto* url :
         {"{{ arguments.id }}",
          "{{ arguments.id }}://h/x",
          "https://{{ arguments.id }}/x",
          "https://a.{{ arguments.id }}/x",
          "https://h:{{ arguments.id }}/x",
          "https://h{{ arguments.id }}",
          "https://h{{ arguments.id }}/x"}) {
        const auto compiled = compile(url);
        INFO(url);
        CHECK_FALSE(compiled.url.has_value());
        CHECK_THAT(all_of(compiled.diagnostics), ContainsSubstring("hosts are fixed by the file"));
    }
    const auto compiled = compile("https://h/{{ arguments.id | optional }}");
    CHECK_THAT(all_of(compiled.diagnostics), ContainsSubstring("cannot be left out"));
}

TEST_CASE("links to the next page") {
    CHECK(
        tools::next_link(R"(<https://h/a?p=2>; rel="next", <https://h/a?p=9>; rel="last")") ==
        "https://h/a?p=2"
    );
    CHECK(
        tools::next_link(R"(<https://h/a,b>; rel=prev, </c>; title="x"; rel="first next")") == "/c"
    );
    CHECK_FALSE(tools::next_link(R"(<https://h/a>; rel="prev")").has_value());
    CHECK_FALSE(tools::next_link(R"(<https://h/a>; title="next")").has_value());
    CHECK_FALSE(tools::next_link("<broken").has_value());

    tools::HttpRequest request;
    request.origin = {true, "h.example", 443};
    request.target = "/api/tickets?x=1";
    const auto target = [&](const std::string& url) {
        return tools::same_origin_target(request, url);
    };
    CHECK(target("https://h.example/api/tickets?p=2") == "/api/tickets?p=2");
    CHECK(target("https://H.example:443/y#z") == "/y");
    CHECK(target("?p=2") == "/api/tickets?p=2");
    CHECK(target("/other?p=2") == "/other?p=2");
    CHECK_FALSE(target("https://evil.example/api/tickets?p=2").has_value());
    CHECK_FALSE(target("//evil.example/x").has_value());
    CHECK_FALSE(target("http://h.example/x").has_value());
    CHECK_FALSE(target("https://h.example:8443/x").has_value());
    CHECK_FALSE(target("https://u@h.example/x").has_value());
    CHECK_FALSE(target("file:///etc/passwd").has_value());
    CHECK_FALSE(target("/a b\r\nX: y").has_value());

    CHECK(tools::with_parameter("/a", "c", "x y") == "/a?c=x%20y");
    CHECK(tools::with_parameter("/a?c=1&d=2", "c", "3") == "/a?d=2&c=3");
    CHECK(tools::parameter("/a?limit=20&d", "limit") == "20");
    CHECK_FALSE(tools::parameter("/a?d", "d").has_value());
}
