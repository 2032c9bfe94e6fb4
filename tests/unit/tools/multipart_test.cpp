#include "tools/multipart.hpp"

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/toolset.hpp"

using namespace test;

namespace {

const std::string kManual = "    reconcile: { type: manual, reason: a test }\n";

std::string checked(const std::string& execute) {
    const auto config = configuration(
        "  t:\n    effect: read\n    execute: { type: http, method: POST, url: "
        "'https://h.example/', " +
        execute + " }\n"
    );
    config::Diagnostics diagnostics;
    tools::check_toolset(config, diagnostics);
    return all_of(diagnostics);
}

}  // namespace

TEST_CASE("a multipart body, byte by byte") {
    const auto body = tools::multipart_encode(
        {{"a", std::nullopt, "", "1"},
         {"f \"x\"\r\n", "ü\".txt", "text/plain", "line\r\n"},
         {"empty", std::nullopt, "", ""}}
    );
    const std::string kType = "multipart/form-data; boundary=";
    REQUIRE(body.content_type.rfind(kType, 0) == 0);
    const auto boundary = body.content_type.substr(kType.size());
    CHECK(boundary.size() == 48);
    CHECK(
        body.text ==
        "--" + boundary + "\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--" +
            boundary +
            "\r\nContent-Disposition: form-data; name=\"f %22x%22%0D%0A\"; "
            "filename=\"ü%22.txt\"\r\nContent-Type: text/plain\r\n\r\nline\r\n\r\n--" +
            boundary + "\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n\r\n--" +
            boundary + "--\r\n"
    );
}

TEST_CASE("the boundary depends on the parts alone, and is in none of them") {
    const std::vector<tools::MultipartPart> parts = {{"a", std::nullopt, "", "1"}};
    const auto first = tools::multipart_encode(parts);
    CHECK(tools::multipart_encode(parts).content_type == first.content_type);
    // A part that holds the boundary it would have had: another is taken.
    for (const auto& content : {"1", first.text.c_str()}) {
        const auto body = tools::multipart_encode({{"a", "f", "", content}});
        const auto boundary = body.content_type.substr(body.content_type.rfind('=') + 1);
        CHECK(std::string(content).find(boundary) == std::string::npos);
    }
    CHECK(
        tools::multipart_encode({{"a", std::nullopt, "", "2"}}).content_type != first.content_type
    );
}

TEST_CASE("optional parts are left out, and a body without any is refused") {
    const auto sent = [](const std::string& parts, const std::string& arguments) {
        HttpToolFixture fixture(
            "    execute: { type: http, method: POST, url: 'https://h.example/', multipart: " +
            parts + " }\n" + kManual
        );
        fixture.sender->answer(200);
        const auto outcome = fixture.perform(arguments);
        if (const auto* refused = std::get_if<outbox::Rejected>(&outcome)) {
            CHECK_FALSE(refused->sent);
            return refused->error.code;
        }
        const auto& body = fixture.sender->requests.at(0).body;
        std::string names;
        for (std::size_t at = body.find("name=\""); at != std::string::npos;
             at = body.find("name=\"", at + 1)) {
            names += body.substr(at + 6, body.find('"', at + 6) - at - 6) + ' ';
        }
        return names;
    };
    const std::string kParts =
        "{ title: '{{ arguments.title }}', note: '{{ arguments.note | optional }}', n: 7, yes: "
        "true, doc: { filename: '{{ arguments.file | optional }}', base64: '{{ arguments.doc | "
        "optional }}' } }";
    CHECK(sent(kParts, R"({"title": "a"})") == "title n yes ");
    CHECK(sent(kParts, R"({"title": "a", "note": "b", "doc": "YQ=="})") == "title note n yes doc ");
    CHECK(sent(kParts, "{}") == "missing_argument");
    CHECK(sent("{ a: '{{ arguments.x | optional }}' }", "{}") == "missing_argument");
}

TEST_CASE("mistakes in multipart") {
    CHECK_THAT(checked("multipart: {}"), ContainsSubstring("multipart needs a part"));
    CHECK_THAT(
        checked("multipart: { a: { filename: x } }"),
        ContainsSubstring("the part a needs exactly one of text, json and base64")
    );
    CHECK_THAT(
        checked("multipart: { a: { text: x, json: {} } }"), ContainsSubstring("exactly one of")
    );
    CHECK_THAT(
        checked("multipart: { a: { text: x, filname: y } }"),
        ContainsSubstring("unknown key filname of a part (did you mean filename?")
    );
    CHECK_THAT(
        checked("multipart: { '{{ arguments.x }}': a }"),
        ContainsSubstring("a template cannot be the name of a part")
    );
    CHECK_THAT(
        checked("multipart: { a: { text: '{{ arguments.x }}' } }"),
        ContainsSubstring("does not say how it is escaped")
    );
    CHECK_THAT(checked("multipart: { a: [[1]] }"), ContainsSubstring("a part must be a text"));
    CHECK_THAT(
        checked("multipart: { a: 1 }, headers: { content-type: multipart/mixed }"),
        ContainsSubstring("names the boundary")
    );
    CHECK(checked("multipart: { a: 1, b: { filename: x, text: y } }").empty());
}
