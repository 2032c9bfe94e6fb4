#include "tools/template.hpp"

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/value_template.hpp"

using namespace test;

namespace {

struct Compiled {
    config::Diagnostics diagnostics;
    tools::Template text;
};

Compiled compile(const std::string& text, bool compensation = false) {
    Compiled result;
    tools::CompileContext context{.diagnostics = result.diagnostics, .compensation = compensation};
    auto file = std::make_shared<const std::string>("test.yaml");
    result.text = tools::Template::compile({.value = text, .mark = {file, 7, 3}}, context);
    return result;
}

// Renders as a typed value; "refused: code" or "dropped" otherwise.
std::string typed(const std::string& text, const std::string& arguments) {
    const auto compiled = compile(text);
    INFO(text << "\n" << all_of(compiled.diagnostics));
    REQUIRE_FALSE(compiled.diagnostics.has_errors());
    const auto call = call_with(arguments);
    const auto rendered = compiled.text.render_value({call});
    if (!rendered.ok()) return "refused: " + rendered.error().code;
    if (!rendered.value()) return "dropped";
    return outbox::to_text(*rendered.value());
}

std::string mistake(const std::string& text, bool compensation = false) {
    const auto compiled = compile(text, compensation);
    REQUIRE(compiled.diagnostics.all().size() == 1);
    CHECK(compiled.diagnostics.all()[0].mark.line == 7);
    CHECK(compiled.diagnostics.all()[0].mark.column == 3);
    return all_of(compiled.diagnostics);
}

}  // namespace

TEST_CASE("exactly one template keeps its JSON type and the digits of numbers") {
    CHECK(typed("{{ arguments.n }}", R"({"n": 9007199254740993})") == "9007199254740993");
    CHECK(typed("{{ arguments.n }}", R"({"n": 20.0})") == "20.0");
    CHECK(typed("{{ arguments.n }}", R"({"n": 1e400})") == "1e400");
    CHECK(typed("{{arguments.o}}", R"({"o": {"a": [1, null]}})") == R"({"a":[1,null]})");
    CHECK(typed("{{ arguments.b }}", R"({"b": true})") == "true");
    CHECK(typed("{{ arguments.z }}", R"({"z": null})") == "null");
    CHECK(typed("{{ arguments }}", R"({"a": 1})") == R"({"a":1})");
    CHECK(typed("{{ arguments.list.1.x }}", R"({"list": [0, {"x": "y"}]})") == R"("y")");
}

TEST_CASE("mixed text is a string") {
    CHECK(typed("n={{ arguments.n }}!", R"({"n": 20.0})") == R"("n=20.0!")");
    CHECK(typed(" {{ arguments.n }}", R"({"n": 1})") == R"(" 1")");
    CHECK(
        typed("{{ arguments.a }}{{ arguments.b }}", R"({"a": "x", "b": false})") == R"("xfalse")"
    );
    CHECK(typed("plain }} text", "{}") == R"("plain }} text")");
    CHECK(typed("x{{ arguments.o }}", R"({"o": {}})") == "refused: invalid_argument");
    CHECK(typed("x{{ arguments.o | json }}", R"({"o": {"a": 1}})") == R"("x{\"a\":1}")");
}

TEST_CASE("rendering is one pass: a value is never a template") {
    CHECK(
        typed("<{{ arguments.a }}>", R"({"a": "{{ operation.key }}"})") ==
        R"("<{{ operation.key }}>")"
    );
    CHECK(typed("{{ arguments.a }}", R"({"a": "${env:HOME}"})") == R"("${env:HOME}")");
}

TEST_CASE("what is missing is refused, unless default or optional says otherwise") {
    CHECK(typed("{{ arguments.x }}", "{}") == "refused: missing_argument");
    CHECK(typed("a {{ arguments.x }}", "{}") == "refused: missing_argument");
    CHECK(typed("a {{ arguments.x }}", R"({"x": null})") == "refused: missing_argument");
    CHECK(typed("{{ arguments.x.y }}", R"({"x": 1})") == "refused: missing_argument");
    CHECK(typed("{{ arguments.x | upper }}", "{}") == "refused: missing_argument");
    CHECK(typed("{{ arguments.x | default('low') }}", "{}") == R"("low")");
    CHECK(typed("{{ arguments.x | default(\"lo}}w\") }}", "{}") == R"("lo}}w")");
    CHECK(typed("{{ arguments.x | default('low') }}", R"({"x": null})") == R"("low")");
    CHECK(typed("{{ arguments.x | default(7) }}", "{}") == "7");
    CHECK(typed("{{ arguments.x | default(null) }}", "{}") == "null");
    CHECK(typed("{{ arguments.x | default('low') | upper }}", "{}") == R"("LOW")");
    CHECK(typed("{{ arguments.x | upper | default('low') }}", "{}") == R"("low")");
    CHECK(typed("{{ arguments.x | default('low') }}", R"({"x": ""})") == R"("")");
    CHECK(typed("{{ arguments.x | optional }}", "{}") == "dropped");
    CHECK(typed("{{ arguments.x | optional }}", R"({"x": null})") == "null");
    CHECK(typed("{{ arguments.x | optional | upper }}", R"({"x": "a"})") == R"("A")");
    CHECK(typed("v {{ arguments.x | optional }}", "{}") == "dropped");
}

TEST_CASE("operation, its times and its optional members") {
    CHECK(typed("{{ operation.id }}/{{ operation.key }}", "{}") == R"("op-1/key-1")");
    CHECK(typed("{{ operation.tool }}", "{}") == R"("create_ticket")");
    CHECK(typed("{{ operation.attempt }}", "{}") == "2");
    CHECK(typed("{{ operation.created_at }}", "{}") == R"("2026-01-02T03:04:05Z")");
    CHECK(typed("{{ operation.first_sent_at | epoch }}", "{}") == "1767323046");
    CHECK(typed("{{ operation.run_id }}", "{}") == "refused: missing_argument");
    CHECK(typed("{{ operation.traceparent | optional }}", "{}") == "dropped");
}

TEST_CASE("filters") {
    CHECK(typed("{{ arguments.x | lower }}", R"({"x": "AbÜ"})") == R"("abÜ")");
    CHECK(typed("{{ arguments.x | trim }}", "{\"x\": \" \\t\\u00a0a b\\u3000\\n\"}") == R"("a b")");
    CHECK(typed("{{ arguments.x | truncate(3) }}", R"({"x": "äöüß"})") == R"("äöü")");
    CHECK(typed("{{ arguments.x | truncate(9) }}", R"({"x": "äöüß"})") == R"("äöüß")");
    CHECK(typed("{{ arguments.x | urlencode }}", R"({"x": "a b/"})") == R"("a%20b%2F")");
    CHECK(typed("{{ arguments.x | base64 }}", R"({"x": "foo"})") == R"("Zm9v")");
    CHECK(typed("{{ arguments.x | hex }}", R"({"x": "AB"})") == R"("4142")");
    CHECK(typed("{{ arguments.x | join(', ') }}", R"({"x": ["a", 1, true]})") == R"("a, 1, true")");
    CHECK(typed("{{ arguments.x | join(',') }}", R"({"x": [{}]})") == "refused: invalid_argument");
    CHECK(typed("{{ arguments.x | upper }}", R"({"x": [1]})") == "refused: invalid_argument");
    CHECK(
        typed("{{ arguments.x | sha256 }}", R"({"x": ""})") ==
        R"("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")"
    );
    CHECK(
        typed("{{ arguments.t | epoch }}", R"({"t": "2026-01-02T03:04:05.5+02:00"})") ==
        "1767315845"
    );
    CHECK(
        typed("{{ arguments.t | iso8601 }}", R"({"t": 1767323045})") == R"("2026-01-02T03:04:05Z")"
    );
    CHECK(
        typed("{{ arguments.t | iso8601 }}", R"({"t": "2026-01-02T03:04:05.5+02:00"})") ==
        R"("2026-01-02T01:04:05.500000Z")"
    );
    CHECK(
        typed("{{ arguments.t | add_seconds(-5) }}", R"({"t": "2026-01-01T00:00:00Z"})") ==
        R"("2025-12-31T23:59:55Z")"
    );
    CHECK(typed("{{ arguments.t | add_seconds(3600) }}", R"({"t": 10})") == "3610");
    CHECK(
        typed("{{ arguments.t | epoch }}", R"({"t": "2026-02-30T00:00:00Z"})") ==
        "refused: invalid_argument"
    );
    CHECK(
        typed("{{ arguments.t | epoch }}", R"({"t": 99999999999999})") ==
        "refused: invalid_argument"
    );
}

TEST_CASE("mistakes name the place and the nearest name") {
    CHECK_THAT(
        mistake("{{ argument.x }}"),
        ContainsSubstring("unknown root argument (did you mean arguments?")
    );
    CHECK_THAT(mistake("{{ operation.ky }}"), ContainsSubstring("no member ky (did you mean key?"));
    CHECK_THAT(mistake("{{ operation }}"), ContainsSubstring("name a member"));
    CHECK_THAT(mistake("{{ operation.id.x }}"), ContainsSubstring("operation.id has no members"));
    CHECK_THAT(
        mistake("{{ arguments.x | uper }}"),
        ContainsSubstring("unknown filter uper (did you mean upper?")
    );
    CHECK_THAT(mistake("{{ arguments.x | truncate }}"), ContainsSubstring("needs an argument"));
    CHECK_THAT(mistake("{{ arguments.x | truncate('a') }}"), ContainsSubstring("whole number"));
    CHECK_THAT(mistake("{{ arguments.x | truncate(0) }}"), ContainsSubstring("whole number"));
    CHECK_THAT(mistake("{{ arguments.x | upper(1) }}"), ContainsSubstring("takes no argument"));
    CHECK_THAT(mistake("{{ arguments.x | default('a }}"), ContainsSubstring("never closed"));
    CHECK_THAT(mistake("{{ arguments.x"), ContainsSubstring("never closed"));
    CHECK_THAT(mistake("{{ }}"), ContainsSubstring("a name is missing"));
    CHECK_THAT(mistake("{{ arguments..x }}"), ContainsSubstring("a name is missing"));
    CHECK_THAT(mistake("{{ arguments.x upper }}"), ContainsSubstring("unexpected"));
    CHECK_THAT(mistake("{{ arguments.x | default({}) }}"), ContainsSubstring("is no argument"));
    CHECK_THAT(mistake("{{ original.id }}"), ContainsSubstring("only a compensation"));
    CHECK_THAT(mistake("{{ page.number }}"), ContainsSubstring("paginate"));
    CHECK_THAT(mistake("{{ original.reslt.id }}", true), ContainsSubstring("did you mean result?"));
}

TEST_CASE("a compensation sees the original") {
    auto compiled =
        compile("{{ original.result.id }} {{ original.arguments.a }} {{ original.id }}", true);
    REQUIRE_FALSE(compiled.diagnostics.has_errors());
    auto call = call_with("{}");
    call.intent.compensates = outbox::OperationId("op-0");
    call.intent.original_result = json(R"({"id": "T-1"})");
    call.intent.original_arguments = json(R"({"a": 5})");
    const auto rendered = compiled.text.render_text({call});
    REQUIRE(rendered.ok());
    CHECK(rendered.value() == "T-1 5 op-0");
}

TEST_CASE("places without escaping of their own need a filter that names it") {
    const auto problems = [](const std::string& text) {
        config::Diagnostics diagnostics;
        tools::CompileContext context{.diagnostics = diagnostics};
        (void)tools::Template::compile_escaped({.value = text, .mark = {}}, context);
        return all_of(diagnostics);
    };
    CHECK(problems("a {{ arguments.x | xml }} {{ arguments.y | json }}").empty());
    CHECK(problems("{{ arguments.x | upper | ical_text }} {{ arguments.z | raw }}").empty());
    CHECK_THAT(
        problems("{{ arguments.x }}"),
        ContainsSubstring("does not say how it is escaped (end it with | json")
    );
    // The escape must be the last word: upper would break &amp;.
    CHECK_THAT(problems("{{ arguments.x | xml | upper }}"), ContainsSubstring("does not say how"));
    CHECK_THAT(problems("{{ arguments.x | base64 }}"), ContainsSubstring("does not say how"));
}

TEST_CASE("a JSON body is built as values: members are dropped, never added") {
    config::Diagnostics diagnostics;
    tools::CompileContext context{.diagnostics = diagnostics};
    const auto body = tools::ValueTemplate::compile(
        yaml("{ a: '{{ arguments.a }}', b: '{{ arguments.b | optional }}', n: 20.0, t: true, "
             "l: [ '{{ arguments.b | optional }}', '{{ arguments.a }}', ~ ], o: { x: 'x{{ "
             "arguments.a }}' } }"),
        context
    );
    REQUIRE_FALSE(diagnostics.has_errors());
    const auto call = call_with(R"({"a": "\",\"admin\":true,\"x\":\""})");
    const auto rendered = body.render({call});
    REQUIRE(rendered.ok());
    const auto text = outbox::to_text(*rendered.value());
    CHECK(
        text ==
        R"({"a":"\",\"admin\":true,\"x\":\"","n":20.0,"t":true,)"
        R"("l":["\",\"admin\":true,\"x\":\"",null],"o":{"x":"x\",\"admin\":true,\"x\":\""}})"
    );
    (void)tools::ValueTemplate::compile(yaml("{ '{{ arguments.a }}': 1 }"), context);
    CHECK_THAT(all_of(diagnostics), ContainsSubstring("a template cannot be the name of a member"));
}
