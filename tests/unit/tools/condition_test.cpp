#include "tools/condition.hpp"

#include "tests/unit/tools/tool_fixture.hpp"

using namespace test;
using tools::AnswerKind;
using tools::Holds;

namespace {

tools::Answer answer(int status, const std::string& body = {}) {
    tools::Answer result;
    result.status = status;
    result.headers = {{"Content-Type", "application/json"}, {"X-Count", "7"}};
    result.text = body;
    tools::parse_body(result);
    return result;
}

Holds holds(
    const std::string& when, const tools::Answer& given, const std::string& arguments = "{}"
) {
    config::Diagnostics diagnostics;
    tools::CompileContext context{.diagnostics = diagnostics};
    const auto condition = tools::Condition::compile(yaml(when), AnswerKind::http, context);
    INFO(when << "\n" << all_of(diagnostics));
    REQUIRE_FALSE(diagnostics.has_errors());
    const auto call = call_with(arguments);
    return condition.holds(given, {call});
}

bool yes(const std::string& when, const tools::Answer& given, const std::string& arguments = "{}") {
    const auto held = holds(when, given, arguments);
    REQUIRE(held != Holds::undecidable);
    return held == Holds::yes;
}

std::string mistakes(const std::string& when, AnswerKind kind = AnswerKind::http) {
    config::Diagnostics diagnostics;
    tools::CompileContext context{.diagnostics = diagnostics};
    (void)tools::Condition::compile(yaml(when), kind, context);
    return all_of(diagnostics);
}

}  // namespace

TEST_CASE("status: one, a list, classes") {
    CHECK(yes("{ status: 201 }", answer(201)));
    CHECK_FALSE(yes("{ status: 201 }", answer(200)));
    CHECK(yes("{ status: [200, 201] }", answer(201)));
    CHECK(yes("{ status: 5xx }", answer(503)));
    CHECK_FALSE(yes("{ status: 5xx }", answer(499)));
    CHECK(yes("{ status: [400, 42x] }", answer(429)));
    CHECK_FALSE(yes("{ status: [400, 42x] }", answer(430)));
    CHECK_THAT(mistakes("{ status: 4x2 }"), ContainsSubstring("\"4x2\" is no code"));
    CHECK_THAT(mistakes("{ status: 700 }"), ContainsSubstring("is no code"));
    CHECK_THAT(mistakes("{ status: ok }"), ContainsSubstring("is no code"));
    CHECK_THAT(mistakes("{ status: { not: 200 } }"), ContainsSubstring("is no code"));
    CHECK_THAT(mistakes("{ status: [] }"), ContainsSubstring("empty list"));
}

TEST_CASE("body: JSON types are kept, numbers are equal by value") {
    const auto given = answer(
        200,
        R"({"id": 1, "s": "1", "f": 20.0, "z": null, "b": true, "l": ["a", 2], "o": {"x/y": 3}})"
    );
    CHECK(yes("{ body: { /id: 1 } }", given));
    CHECK(yes("{ body: { /id: 1.0 } }", given));
    CHECK_FALSE(yes("{ body: { /id: '1' } }", given));
    CHECK(yes("{ body: { /s: '1' } }", given));
    CHECK(yes("{ body: { /f: 20 } }", given));
    CHECK(yes("{ body: { /z: ~ } }", given));
    CHECK_FALSE(yes("{ body: { /none: ~ } }", given));
    CHECK(yes("{ body: { /b: true } }", given));
    CHECK(yes("{ body: { /l/1: 2, '/o/x~1y': 3 } }", given));
    CHECK_FALSE(yes("{ body: { /l/1: 2, '/o/x~1y': 4 } }", given));
    CHECK(yes("{ body: { /id: [3, 2, 1] } }", given));
}

TEST_CASE("exists, contains, matches and not") {
    const auto given = answer(200, R"({"s": "state: closed", "l": ["a", 2], "z": null})");
    CHECK(yes(
        "{ body: { /s: { exists: true }, /none: { exists: false }, /z: { exists: true } } }", given
    ));
    CHECK(yes("{ body: { /s: { contains: clos } } }", given));
    CHECK(yes("{ body: { /l: { contains: 2 } } }", given));
    CHECK_FALSE(yes("{ body: { /l: { contains: '2' } } }", given));
    CHECK(yes("{ body: { /s: { matches: 'c[l]o.*d$' } } }", given));
    CHECK_FALSE(yes("{ body: { /s: { matches: '^closed' } } }", given));
    CHECK_FALSE(yes("{ body: { /none: { matches: '.*' } } }", given));
    CHECK(yes("{ body: { /s: { not: open } } }", given));
    CHECK(yes("{ body: { /s: { not: { matches: '^closed' }, contains: state } } }", given));
    CHECK_FALSE(yes("{ body: { /l/0: { not: [a, b] } } }", given));
    CHECK_THAT(
        mistakes("{ body: { /s: { matches: '(' } } }"),
        ContainsSubstring("not a regular expression")
    );
    CHECK_THAT(
        mistakes("{ body: { /s: { matches: '{{ arguments.x }}' } } }"),
        ContainsSubstring("template cannot be a regular")
    );
    CHECK_THAT(
        mistakes("{ body: { /s: { matchs: a } } }"), ContainsSubstring("did you mean matches?")
    );
    CHECK_THAT(mistakes("{ body: { s: a } }"), ContainsSubstring("did you mean /s?"));
    CHECK_THAT(mistakes("{ body: { /s: {} } }"), ContainsSubstring("empty condition"));
    CHECK_THAT(mistakes("{ body: { /s: { exists: maybe } } }"), ContainsSubstring("true or false"));
}

TEST_CASE("a regular expression cannot cost more than linear time") {
    const auto given = answer(200, "{\"s\": \"" + std::string(200'000, 'a') + "\"}");
    CHECK_FALSE(yes("{ body: { /s: { matches: '(a*)*b' } } }", given));
    // Input beyond the cap is not looked at.
    CHECK_FALSE(yes("{ text: { matches: '\"}$' } }", given));
}

TEST_CASE("header and text") {
    const auto given = answer(200, "{\"a\": 1}");
    CHECK(yes("{ header: { content-type: { contains: json } } }", given));
    CHECK(yes("{ header: { X-Count: '7', X-None: { exists: false } } }", given));
    CHECK_FALSE(yes("{ header: { X-Count: '8' } }", given));
    CHECK(yes("{ text: { contains: '\"a\"' } }", given));
    CHECK(yes("{ text: '' }", answer(204)));
}

TEST_CASE("values may be templates") {
    const auto given = answer(200, R"({"n": 5, "k": "key-1"})");
    CHECK(yes(
        "{ body: { /k: '{{ operation.key }}', /n: '{{ arguments.n }}' } }", given, R"({"n": 5.0})"
    ));
    CHECK_FALSE(yes("{ body: { /n: '{{ arguments.n }}' } }", given, R"({"n": "5"})"));
    CHECK_FALSE(yes("{ body: { /n: '{{ arguments.n }}' } }", given));
    CHECK_THAT(
        mistakes("{ body: { /n: '{{ arguments.n | optional }}' } }"),
        ContainsSubstring("cannot be left out")
    );
    CHECK_THAT(
        mistakes("{ text: '{{ arguments.n | optional }}' }"),
        ContainsSubstring("cannot be left out")
    );
    config::Diagnostics diagnostics;
    tools::CompileContext context{.diagnostics = diagnostics};
    const auto condition = tools::Condition::compile(
        yaml("{ body: { /n: ['{{ arguments.n }}'] } }"), AnswerKind::http, context
    );
    const auto call = call_with("{}");
    REQUIRE(condition.check({call}).has_value());
    CHECK(condition.check({call})->code == "missing_argument");
}

TEST_CASE("a body nobody could read decides nothing") {
    auto html = answer(502, "<html>");
    CHECK(holds("{ body: { /a: { exists: false } } }", html) == Holds::undecidable);
    CHECK(holds("{ status: 200, body: { /a: 1 } }", html) == Holds::no);
    CHECK(holds("{ status: 502 }", html) == Holds::yes);
    CHECK(holds("{ text: { contains: html } }", html) == Holds::yes);
    html.truncated = true;
    CHECK(holds("{ text: { contains: html } }", html) == Holds::undecidable);
    CHECK(holds("{ status: 502 }", html) == Holds::yes);
    // No body is readable: it has no members.
    CHECK(holds("{ body: { /a: { exists: false } } }", answer(204)) == Holds::yes);
    CHECK(holds("{ body: { /a: 1 } }", answer(204)) == Holds::no);
}

TEST_CASE("unknown members name the nearest, per adapter") {
    CHECK_THAT(
        mistakes("{ stauts: 200 }"),
        ContainsSubstring("unknown condition stauts (did you mean status?")
    );
    CHECK_THAT(mistakes("{ exit_code: 0 }"), ContainsSubstring("unknown condition exit_code"));
    CHECK_THAT(
        mistakes("{ status: 200 }", AnswerKind::command),
        ContainsSubstring("unknown condition status")
    );
    CHECK(mistakes("{ exit_code: [0, 75] }", AnswerKind::command).empty());
    CHECK_THAT(
        mistakes("{ exit_code: 256 }", AnswerKind::command), ContainsSubstring("is no code")
    );
    CHECK_THAT(mistakes("{}"), ContainsSubstring("match every answer"));
    CHECK_THAT(mistakes("[200]"), ContainsSubstring("must be a mapping"));
}
