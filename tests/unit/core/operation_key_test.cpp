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

Json vectors() {
    std::ifstream file(OUTBOX_SOURCE_DIR "/tests/vectors/operation_keys.json");
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
    const auto file = vectors();
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
    const std::pair<std::uint64_t, const char*> samples[] = {
        {0x0000000000000000, "0"},
        {0x8000000000000000, "0"},
        {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0xffefffffffffffff, "-1.7976931348623157e+308"},
        {0x4340000000000000, "9007199254740992"},
        {0xc340000000000000, "-9007199254740992"},
        {0x4430000000000000, "295147905179352830000"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
        {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
        {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"},
        {0x41b3de4355555554, "333333333.33333325"},
        {0x41b3de4355555555, "333333333.3333333"},
        {0x41b3de4355555556, "333333333.3333334"},
        {0x41b3de4355555557, "333333333.33333343"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
    };
    for (const auto& [bits, expected] : samples) {
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
