#include "tools/arguments_schema.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "config/load.hpp"
#include "outbox/decide.hpp"
#include "tests/support/recorders.hpp"
#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/adapter.hpp"
#include "tools/schema_limits.hpp"
#include "tools/toolset.hpp"

using namespace test;

namespace {

std::unique_ptr<tools::ArgumentsSchema> compile(const std::string& text) {
    config::Diagnostics diagnostics;
    auto schema = tools::ArgumentsSchema::compile(yaml(text), diagnostics);
    INFO(all_of(diagnostics));
    REQUIRE(schema != nullptr);
    return schema;
}

bool fits(const std::string& schema, const std::string& arguments) {
    return !compile(schema)->violation(json(arguments)).has_value();
}

std::string violation(const std::string& schema, const std::string& arguments) {
    return compile(schema)->violation(json(arguments)).value_or("fits");
}

std::string nested(const std::string& open, const std::string& close, int levels) {
    std::string text;
    for (int i = 0; i < levels; ++i) text += open;
    text += "1";
    for (int i = 0; i < levels; ++i) text += close;
    return text;
}

// An action that says whether it was reached.
class Reached final : public tools::Action {
 public:
    explicit Reached(int& count) : count_(count) {}
    boost::asio::awaitable<outbox::Outcome> perform(outbox::ToolCall, outbox::Deadline) override {
        ++count_;
        co_return outbox::Succeeded{};
    }

 private:
    int& count_;
};

struct Attempt {
    outbox::Outcome outcome;
    int reached = 0;
};

Attempt attempt(const std::string& schema, outbox::ToolCall call) {
    Attempt result;
    std::map<std::string, config::Credential> credentials;
    credentials["c"].secret.value = "s3cr3t-token";
    tools::AdapterTool tool(
        std::make_unique<Reached>(result.reached),
        nullptr,
        std::make_shared<const tools::SecretMask>(credentials),
        compile(schema)
    );
    boost::asio::io_context io;
    auto executing =
        tool.execute(std::move(call), outbox::Deadline{outbox::BootClock::now() + 10s});
    result.outcome = run_coroutine(io, std::move(executing), 10s);
    return result;
}

const std::string kTicket =
    "{ type: object, required: [title], additionalProperties: false, properties: {"
    " title: { type: string, maxLength: 5 }, severity: { enum: [low, high] },"
    " lines: { type: array, items: { type: object, properties: { price: { type: number } } } } } }";

}  // namespace

TEST_CASE("a violation names its place and what was expected, never the value") {
    CHECK(fits(kTicket, R"({"title": "disk"})"));
    CHECK(
        violation(kTicket, R"({"title": "disk", "severity": "s3cr3t"})") ==
        "The arguments do not fit the tool's schema: "
        "at \"/severity\": expected one of [\"low\",\"high\"]."
    );
    CHECK_THAT(
        violation(kTicket, "{}"), ContainsSubstring("at \"\": ") && ContainsSubstring("title")
    );
    CHECK_THAT(
        violation(kTicket, R"({"title": "disk", "lines": [{"price": 1}, {"price": "x"}]})"),
        ContainsSubstring("at \"/lines/1/price\": expected number, not string")
    );
    CHECK_THAT(violation(kTicket, R"({"title": "disk full"})"), ContainsSubstring("at \"/title\""));
    CHECK_THAT(
        violation(kTicket, R"({"title": "disk", "a/b~c": 1})"),
        ContainsSubstring("at \"/a~1b~0c\": nothing is allowed here")
    );
    CHECK_THAT(
        violation("{ additionalProperties: { type: string } }", R"({"a/b~c": 1})"),
        ContainsSubstring("at \"/a~1b~0c\"")
    );
}

TEST_CASE("a message is bounded, whatever the arguments are called") {
    const auto schema = compile("{ additionalProperties: { type: string } }");
    std::string arguments = "{";
    for (int i = 0; i < 50; ++i) {
        arguments +=
            (i == 0 ? "\"" : ",\"") + std::to_string(i) + std::string(10'000, 'n') + "\u00e9\": 1";
    }
    const auto said = schema->violation(json(arguments + "}")).value();
    CHECK(said.size() <= tools::ArgumentsSchema::kMaxMessage);
    CHECK_THAT(said, ContainsSubstring("expected string, not number"));
}

TEST_CASE("numbers are judged by their exact value") {
    CHECK_FALSE(
        fits("{ properties: { n: { maximum: 9007199254740992 } } }", R"({"n": 9007199254740993})")
    );
    CHECK(fits("{ properties: { n: { maximum: 9007199254740993 } } }", R"({"n": 9007199254740993})")
    );
    CHECK_FALSE(
        fits("{ properties: { n: { const: 9007199254740992 } } }", R"({"n": 9007199254740993})")
    );
    CHECK(fits("{ properties: { n: { const: 1.0 } } }", R"({"n": 1})"));
    CHECK_FALSE(fits(
        "{ properties: { n: { enum: [0.1] } } }", R"({"n": 0.1000000000000000055511151231257827})"
    ));
    CHECK(fits("{ properties: { n: { multipleOf: 0.1 } } }", R"({"n": 0.3})"));
    CHECK(fits("{ properties: { n: { multipleOf: 0.01 } } }", R"({"n": 19.99})"));
    CHECK_FALSE(fits("{ properties: { n: { multipleOf: 0.01 } } }", R"({"n": 19.999})"));
    CHECK(
        fits("{ properties: { n: { multipleOf: 3 } } }", R"({"n": 300000000000000000000000000003})")
    );
    CHECK_FALSE(
        fits("{ properties: { n: { multipleOf: 3 } } }", R"({"n": 300000000000000000000000000004})")
    );
    CHECK(fits("{ properties: { n: { multipleOf: 7 } } }", R"({"n": 7e400})"));
    CHECK_FALSE(fits("{ properties: { n: { multipleOf: 7 } } }", R"({"n": 1e400})"));
    CHECK_FALSE(fits("{ properties: { n: { exclusiveMinimum: -0.1 } } }", R"({"n": -0.10})"));
    CHECK(fits(
        "{ properties: { n: { exclusiveMinimum: -0.1 } } }", R"({"n": -0.0999999999999999999999})"
    ));
    CHECK_FALSE(fits("{ properties: { n: { minimum: 1e-300 } } }", R"({"n": 1e-301})"));
    for (const auto* whole : {"1", "1.0", "1e3", "-0.0", "120e-1", "1e400"}) {
        INFO(whole);
        CHECK(
            fits("{ properties: { n: { type: integer } } }", "{\"n\": " + std::string(whole) + "}")
        );
    }
    CHECK_FALSE(fits("{ properties: { n: { type: integer } } }", R"({"n": 1.5})"));
    CHECK_FALSE(fits("{ properties: { n: { type: integer } } }", R"({"n": 9007199254740993.5})"));
}

TEST_CASE("regular expressions are linear: no text makes them run away or overflow") {
    const auto schema = compile("{ properties: { s: { pattern: '^(a+)+$' } } }");
    const auto begun = std::chrono::steady_clock::now();
    CHECK(schema->violation(json("{\"s\": \"" + std::string(1'000'000, 'a') + "!\"}")).has_value());
    CHECK_FALSE(schema->violation(json("{\"s\": \"" + std::string(1'000'000, 'a') + "\"}")));
    CHECK(std::chrono::steady_clock::now() - begun < 30s);
    // Not anchored, as the standard says.
    CHECK(fits("{ properties: { s: { pattern: b } } }", R"({"s": "abc"})"));
}

TEST_CASE("formats: the closed set is checked, any other one is said to be not") {
    const auto one = [](const std::string& format, const std::string& text) {
        return fits(
            "{ properties: { s: { format: " + format + " } } }", "{\"s\": \"" + text + "\"}"
        );
    };
    CHECK(one("date", "2026-11-30"));
    CHECK_FALSE(one("date", "2026-13-30"));
    CHECK(one("date-time", "2026-11-30T18:30:00.5+01:00"));
    CHECK_FALSE(one("date-time", "2026-11-30 18:30"));
    CHECK(one("uuid", "00000000-0000-4000-8000-00000000000a"));
    CHECK_FALSE(one("uuid", "00000000-0000-4000-8000-00000000000"));
    CHECK(one("email", "a@example.com"));
    CHECK_FALSE(one("email", "a@b@c"));
    CHECK(one("ipv4", "192.168.0.255"));
    CHECK_FALSE(one("ipv4", "192.168.0.256"));
    CHECK(one("uri", "https://example.com/a?b=c"));
    CHECK_FALSE(one("uri", "example.com"));
    config::Diagnostics diagnostics;
    CHECK(tools::ArgumentsSchema::compile(yaml("{ format: hostname }"), diagnostics) != nullptr);
    CHECK_THAT(all_of(diagnostics), ContainsSubstring("format hostname is not checked"));
}

TEST_CASE("later drafts' names for the same things") {
    const std::string tuple =
        "{ properties: { t: { prefixItems: [{ type: string }], items: { type: integer } } } }";
    CHECK(fits(tuple, R"({"t": ["a", 1, 2]})"));
    CHECK_FALSE(fits(tuple, R"({"t": ["a", 1, "b"]})"));
    CHECK_FALSE(fits(tuple, R"({"t": [1]})"));
    CHECK_FALSE(fits("{ dependentRequired: { a: [b] } }", R"({"a": 1})"));
    CHECK(fits("{ dependentRequired: { a: [b] } }", R"({"a": 1, "b": 2})"));
    CHECK_FALSE(fits("{ dependentSchemas: { a: { required: [c] } } }", R"({"a": 1})"));
    CHECK(fits(
        "{ $schema: 'https://json-schema.org/draft/2020-12/schema', $defs: { n: { type: integer } "
        "},"
        " properties: { a: { $ref: '#/$defs/n', maximum: 3 } } }",
        R"({"a": 3})"
    ));
    CHECK_FALSE(fits(
        "{ $defs: { n: { type: integer } }, properties: { a: { $ref: '#/$defs/n', maximum: 3 } } }",
        R"({"a": 4})"
    ));
    CHECK_FALSE(fits(
        "{ definitions: { 'a/b~c d': { type: integer } },"
        " properties: { a: { $ref: '#/definitions/a~1b~0c%20d' } } }",
        R"({"a": "x"})"
    ));
}

TEST_CASE("a hostile argument and a schema that recurses: bounded in time and stack") {
    const std::string tree =
        "{ $defs: { node: { type: object, properties: { a: { $ref: '#/$defs/node' } } } },"
        " properties: { a: { $ref: '#/$defs/node' } } }";
    // Exponential for a validator without bounds: both branches at every level.
    const std::string branching =
        "{ $defs: { node: { anyOf: [ { properties: { a: { $ref: '#/$defs/node' } }, required: [zz] "
        "},"
        " { properties: { a: { $ref: '#/$defs/node' } }, required: [yy] } ] } },"
        " properties: { a: { $ref: '#/$defs/node' } } }";
    const auto measured =
        [](const std::string& what, const std::string& schema, const Json& arguments) {
            const auto compiled = compile(schema);
            const auto begun = std::chrono::steady_clock::now();
            const auto said = compiled->violation(arguments);
            const std::chrono::duration<double, std::milli> took =
                std::chrono::steady_clock::now() - begun;
            if (std::getenv("OUTBOX_TEST_MEASURE") != nullptr) {
                WARN(what << ": " << took.count() << " ms: " << said.value_or("fits"));
            }
            CHECK(took < 30s);
            return said;
        };
    const auto deep = json(nested("{\"a\":", "}", 511));
    CHECK(measured("tree, 511 levels", tree, deep).has_value());
    CHECK(measured("branching, 511 levels", branching, deep).has_value());
    CHECK(measured("branching, 30 levels", branching, json(nested("{\"a\":", "}", 30))).has_value()
    );

    std::string wide = "{\"a\":[0";
    for (int i = 1; wide.size() < 1'000'000; ++i) wide += "," + std::to_string(i);
    wide += "]}";
    const auto many = json(wide);
    CHECK_FALSE(measured(
        "1 MB of numbers",
        "{ properties: { a: { type: array, items: { type: integer, minimum: 0 } } } }",
        many
    ));
    CHECK_FALSE(measured(
        "1 MB of numbers, all different", "{ properties: { a: { uniqueItems: true } } }", many
    ));
    CHECK(measured("1 MB of violations", "{ properties: { a: { items: { type: string } } } }", many)
              .has_value());
    std::string members = "{\"x0\":0";
    for (int i = 1; members.size() < 1'000'000; ++i) {
        members += ",\"x" + std::to_string(i) + "\":0";
    }
    std::string required = "{ required: [";
    for (int i = 0; i < 2000; ++i) required += "y" + std::to_string(i) + ",";
    CHECK(measured("1 MB of members", required + "z] }", json(members + "}")).has_value());
    // Quadratic without bounds: a choice of many for each of many.
    std::string choices = "{ properties: { a: { items: { enum: [";
    for (int i = 0; i < 2000; ++i) choices += "s" + std::to_string(i) + ",";
    CHECK(measured("1 MB against 2,000 choices", choices + "z] } } } }", many).has_value());
    // A number of a hundred thousand digits, many times divided.
    const std::string long_number(100'000, '6');
    CHECK(
        measured(
            "ten numbers of 100,000 digits",
            "{ properties: { a: { items: { multipleOf: 0.000000000000000003, type: integer, "
            "minimum: 5 } } } }",
            json("{\"a\":[" + long_number + "," + long_number + "," + long_number + "]}")
        ) == std::nullopt
    );
}

TEST_CASE("arguments that do not fit end the operation before anything is sent") {
    auto call = call_with(R"({"title": "disk", "severity": "s3cr3t-token"})");
    const auto refused = attempt(kTicket, call);
    CHECK(refused.reached == 0);
    const auto& rejected = get<outbox::Rejected>(refused.outcome);
    CHECK(rejected.error.code == "invalid_arguments");
    CHECK_FALSE(rejected.sent);
    CHECK(rejected.error.message.find("s3cr3t") == std::string::npos);
    CHECK(attempt(kTicket, call_with(R"({"title": "disk"})")).reached == 1);
    // The name of a member may be a secret that the configuration knows.
    const auto masked =
        attempt("{ additionalProperties: { type: string } }", call_with(R"({"s3cr3t-token": 1})"));
    CHECK(get<outbox::Rejected>(masked.outcome).error.message.find("s3cr3t") == std::string::npos);
}

TEST_CASE("after an earlier attempt in doubt, arguments that no longer fit never end as failed") {
    auto call = call_with("{}");
    call.attempt = 2;
    call.ambiguous = true;
    const auto result = attempt(kTicket, call);
    CHECK(result.reached == 0);
    CHECK(get<outbox::Attention>(result.outcome).error.code == "invalid_arguments");

    outbox::LeasedAttempt leased;
    leased.intent = call.intent;
    leased.attempts = 2;
    leased.ambiguous = true;
    outbox::ToolPolicy policy;
    policy.effect = outbox::Effect::write;
    const auto next = outbox::decide_attempt(leased, result.outcome, policy, leased.leased_at, 0);
    CHECK(next.to == outbox::Status::unknown);
    CHECK(next.attention == outbox::AttentionReason::provider);

    // Definite ends before it: nothing is in doubt, and it has failed.
    call.ambiguous = false;
    leased.ambiguous = false;
    const auto certain = attempt(kTicket, call);
    const auto end = outbox::decide_attempt(leased, certain.outcome, policy, leased.leased_at, 0);
    CHECK(end.to == outbox::Status::failed);
    CHECK(end.attempts_delta == -1);
}

TEST_CASE("every mistake in a schema is reported at its place with a way out") {
    namespace fs = std::filesystem;
    const auto before = fs::current_path();
    fs::current_path(BAD_FILES);
    int files = 0;
    for (const auto& entry : fs::directory_iterator(".")) {
        if (entry.path().extension() != ".yaml") continue;
        ++files;
        const auto name = entry.path().stem().string();
        INFO(name);
        auto loaded = config::load(name + ".yaml");
        const auto& config = loaded.config ? loaded.config : loaded.partial;
        REQUIRE(config);
        tools::check_toolset(*config, loaded.diagnostics);
        loaded.diagnostics.sort();
        std::string said;
        for (const auto& diagnostic : loaded.diagnostics.all()) said += to_text(diagnostic) + "\n";
        if (std::getenv("OUTBOX_UPDATE_GOLDEN") != nullptr) std::ofstream(name + ".expect") << said;
        std::ifstream in(name + ".expect");
        CHECK(said == std::string{std::istreambuf_iterator<char>(in), {}});
    }
    fs::current_path(before);
    CHECK(files >= 5);
}
