#include "outbox/operation_key.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "outbox/decimal.hpp"
#include "tests/support/catch.hpp"

using outbox::canonical_json;
using outbox::canonical_number;
using outbox::Json;
using outbox::parse_json;

namespace {

Json vectors(const std::string& name) {
    std::ifstream file(OUTBOX_SOURCE_DIR "/tests/vectors/" + name);
    std::stringstream text;
    text << file.rdbuf();
    auto parsed = parse_json(text.str());
    REQUIRE(parsed.value.has_value());
    return std::move(*parsed.value);
}

std::string text_of(const Json& object, std::string_view key) {
    return *object.find(key)->as_string();
}

std::string canonical(std::string_view text, bool trim = false) {
    return canonical_json(*parse_json(text).value, trim).text;
}

double from_bits(std::uint64_t bits) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// A text of the same value: zeros around, the point moved, an exponent that makes up for it.
std::string disguise(std::mt19937& random, const outbox::Decimal& decimal) {
    if (decimal.digits.empty()) return random() % 2 == 0 ? "-0.00" : "0e5";
    const auto shift = static_cast<std::int64_t>(random() % 9) - 4;
    auto moved = decimal;
    moved.exponent = std::min<std::int64_t>(decimal.exponent, 30) + shift;
    auto text = outbox::plain_notation(moved);
    if (random() % 2 == 0) text += text.find('.') == std::string::npos ? ".000" : "00";
    return text + (random() % 2 == 0 ? "e" : "E") +
           std::to_string(decimal.exponent - moved.exponent);
}

}  // namespace

TEST_CASE("the derived id agrees with the shared vectors") {
    const auto file = vectors("operation_keys.json");
    const auto& cases = *file.find("cases")->as_array();
    REQUIRE(cases.size() >= 25);
    for (const auto& one : cases) {
        const auto arguments = parse_json(text_of(one, "arguments_text"));
        REQUIRE(arguments.value.has_value());
        const auto key = outbox::operation_key(
            text_of(one, "tool"),
            *arguments.value,
            text_of(one, "run_id"),
            std::stoi(one.find("occurrence")->as_number()->text)
        );
        CHECK_FALSE(key.error.has_value());
        CHECK(key.canonical == text_of(one, "canonical"));
        CHECK(key.key == text_of(one, "key"));
    }
}

TEST_CASE("doubles are written as in RFC 8785, appendix B") {
    const auto file = vectors("rfc8785.json");
    const auto& samples = *file.find("numbers")->as_array();
    REQUIRE(samples.size() == 24);
    for (const auto& sample : samples) {
        const auto& pair = *sample.as_array();
        const auto bits = std::stoull(*pair[0].as_string(), nullptr, 16);
        const auto& expected = *pair[1].as_string();
        // The shortest digits of the double, written as C does: the value, not the layout.
        char text[64];
        for (int precision = 0; precision < 18; ++precision) {
            std::snprintf(text, sizeof text, "%.*e", precision, from_bits(bits));
            if (std::strtod(text, nullptr) == from_bits(bits)) break;
        }
        CHECK(canonical_number(text).text == expected);
        CHECK(canonical_number(expected).text == expected);
    }
}

TEST_CASE("documents are written as in RFC 8785") {
    const auto file = vectors("rfc8785.json");
    for (const auto& sample : *file.find("documents")->as_array()) {
        INFO(text_of(sample, "about"));
        CHECK(canonical(text_of(sample, "text")) == text_of(sample, "canonical"));
        CHECK(canonical(text_of(sample, "canonical")) == text_of(sample, "canonical"));
    }
}

TEST_CASE("what Postgres cannot take has no key") {
    const auto refused = [](std::string_view tool,
                            std::string_view arguments,
                            std::string_view run,
                            int occurrence = 1) {
        const auto key = outbox::operation_key(tool, *parse_json(arguments).value, run, occurrence);
        CHECK(key.key.empty() == key.error.has_value());
        return key.error.has_value();
    };
    CHECK_FALSE(refused("t", R"({"a":"\u0001"})", "r"));
    CHECK(refused("t", R"({"a":["x\u0000"]})", "r"));
    CHECK(refused("t", R"({"a\u0000":1})", "r"));
    CHECK(refused("t", "{}", std::string_view("r\0", 2)));
    CHECK(refused(std::string_view("\0", 1), "{}", "r"));
    CHECK(refused("t", "{}", "\xff"));
    CHECK(refused("t\xc3", "{}", "r"));
    CHECK(refused("t", "{}", "r", 0));
    CHECK(refused("t", "{}", "r", -1));
}

TEST_CASE("what a double would fold stays apart, exactly") {
    CHECK(canonical_number("9007199254740993").text == "9007199254740993");
    CHECK(canonical_number("1180591620717411303424").text == "1180591620717411303424");
    CHECK(canonical_number("1.1805916207174113e21").text == "1.1805916207174113e+21");
    CHECK(
        canonical_number("0.1000000000000000055511151231257827").text ==
        "0.1000000000000000055511151231257827"
    );
    CHECK(canonical_number("1e400").text == "1" + std::string(400, '0'));
    CHECK(canonical_number("-1e-400").text == "-0." + std::string(399, '0') + "1");
    CHECK(canonical_number("123456789012345678e3").text == "123456789012345678000");
}

TEST_CASE("numbers beyond the limits are refused before they are expanded") {
    const auto refused = [](const std::string& number) {
        return canonical_number(number).error.has_value();
    };
    CHECK(refused("1e401"));
    CHECK(refused("1e-401"));
    CHECK(refused("1e999999999"));
    CHECK(refused("-1e-99999999999999999999"));
    CHECK_FALSE(refused("0e999999999"));
    CHECK_FALSE(refused("9.99e400"));
    CHECK_FALSE(refused(std::string(100, '9')));
    CHECK(refused(std::string(101, '9')));
    CHECK_FALSE(refused("1" + std::string(300, '0')));
    CHECK_FALSE(refused("0." + std::string(300, '0') + "1"));

    const auto key = outbox::operation_key("t", *parse_json("{\"a\":[1e500]}").value, "r");
    CHECK(key.error.has_value());
    CHECK(key.key.empty());
}

TEST_CASE("keys sort by UTF-16 code units") {
    // From RFC 8785, 3.2.3, and the pair that UTF-8 order would swap.
    CHECK(
        canonical(R"({"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7})"
        ) ==
        "{\"\\r\":2,\"1\":4,\"\xc2\x80\":6,\"\xc3\xb6\":7,\"\xe2\x82\xac\":1,"
        "\"\xf0\x9f\x98\x80\":5,\"\xef\xac\xb3\":3}"
    );
    CHECK(
        canonical(R"({"a\ue000":1,"a\ud7ff":2,"a\ud83d\ude00":3,"a":4})") ==
        "{\"a\":4,\"a\xed\x9f\xbf\":2,\"a\xf0\x9f\x98\x80\":3,\"a\xee\x80\x80\":1}"
    );
}

TEST_CASE("only string values are trimmed, of what ECMAScript calls white space") {
    for (const char* space :
         {"\\t",
          "\\n",
          "\\u000b",
          "\\f",
          "\\r",
          " ",
          "\\u00a0",
          "\\u1680",
          "\\u2000",
          "\\u200a",
          "\\u2028",
          "\\u2029",
          "\\u202f",
          "\\u205f",
          "\\u3000",
          "\\ufeff"}) {
        const std::string s = space;
        CHECK(canonical("\"" + s + "x y" + s + s + "\"", true) == "\"x y\"");
        CHECK(canonical("\"" + s + "\"", true) == "\"\"");
    }
    for (const char* kept : {"\\u180e", "\\u200b", "\\u0085", "\\u001c"}) {
        CHECK(canonical("\"" + std::string(kept) + "\"", true) != "\"\"");
    }
    CHECK(canonical(R"({" k ":[" v ",{"a":" \u3000"}]})", true) == R"({" k ":["v",{"a":""}]})");
    CHECK(canonical("\" v \"") == "\" v \"");
}

TEST_CASE("equal values have equal canonical texts, and only they") {
    std::mt19937 random(20'261'130);
    std::string previous = "1";
    for (int i = 0; i < 20'000; ++i) {
        outbox::Decimal decimal;
        const auto length = 1 + random() % (i % 4 == 0 ? 40 : 18);
        for (std::size_t d = 0; d < length; ++d) {
            decimal.digits += static_cast<char>('0' + random() % 10);
        }
        decimal = outbox::parse_decimal("0." + decimal.digits);
        if (!decimal.digits.empty()) {
            decimal.negative = random() % 2 == 0;
            decimal.exponent = static_cast<std::int64_t>(random() % 60) - 30;
        }
        const auto one = disguise(random, decimal);
        const auto other = disguise(random, decimal);
        const auto text = canonical_number(one).text;
        INFO(one << " " << other << " " << previous);
        REQUIRE(parse_json(one).value.has_value());
        REQUIRE(text == canonical_number(other).text);
        REQUIRE(outbox::parse_decimal(text) == decimal);
        REQUIRE(canonical_number(text).text == text);
        const bool equal = outbox::parse_decimal(previous) == decimal;
        REQUIRE((canonical_number(previous).text == text) == equal);
        previous = one;
    }
}
