#include "outbox/json.hpp"

#include <string>

#include "tests/support/catch.hpp"

using outbox::Json;
using outbox::parse_foreign_json;
using outbox::parse_json;
using outbox::to_text;

namespace {

Json must(std::string_view text) {
    auto parsed = parse_json(text);
    INFO(text << ": " << parsed.error);
    REQUIRE(parsed.value.has_value());
    return std::move(*parsed.value);
}

std::string again(std::string_view text) {
    return to_text(must(text));
}

}  // namespace

TEST_CASE("numbers keep the text they were written with") {
    for (const char* number :
         {"0",
          "-0",
          "1",
          "20.0",
          "2E1",
          "1e400",
          "-1.5e-7",
          "9007199254740993",
          "0.1000000000000000000000000000000000000000001",
          "123456789012345678901234567890",
          "18446744073709551615",
          "-9223372036854775808",
          "0e0",
          "1E+2",
          "0.00",
          "3.141592653589793238462643383279502884197",
          "1e999999999"}) {
        INFO(number);
        const auto parsed = must(number);
        REQUIRE(parsed.as_number() != nullptr);
        CHECK(parsed.as_number()->text == number);
        CHECK(again("[" + std::string(number) + "]") == "[" + std::string(number) + "]");
    }
}

TEST_CASE("what is no JSON is refused with its place") {
    for (const char* text :
         {"",
          " ",
          "01",
          "1.",
          ".5",
          "+1",
          "1e",
          "nul",
          "{",
          "[1,]",
          "{\"a\":1,}",
          "[1] 2",
          "NaN",
          "\"\t\"",
          "\"\\x\"",
          "'a'",
          "{a:1}",
          "[1 2]",
          "\"\\ud800\"",
          "\"\\udc00x\"",
          "\"\xff\"",
          "\"\xc0\x80\"",
          "\"\xed\xa0\x80\"",
          "// c\n1",
          "--1",
          "\"abc",
          "1e99999999999"}) {
        INFO(text);
        const auto parsed = parse_json(text);
        CHECK_FALSE(parsed.value.has_value());
        CHECK_FALSE(parsed.error.empty());
    }
    CHECK(parse_json("[1, x]").offset == 4);
}

TEST_CASE("depth is limited") {
    const std::string deep = std::string(600, '[') + std::string(600, ']');
    CHECK_FALSE(parse_json(deep).value.has_value());
    CHECK(parse_json(deep, {.max_depth = 700}).value.has_value());
    CHECK_FALSE(parse_foreign_json(std::string(100'000, '[')).value.has_value());
}

TEST_CASE("strings survive escapes, NUL included") {
    const auto parsed = must(R"("a\u0000b\"\\\/\n\u00e9\ud83d\ude00")");
    CHECK(*parsed.as_string() == std::string("a\0b\"\\/\n\xc3\xa9\xf0\x9f\x98\x80", 13));
    CHECK(to_text(parsed) == "\"a\\u0000b\\\"\\\\/\\n\xc3\xa9\xf0\x9f\x98\x80\"");
    CHECK(again(to_text(parsed)) == to_text(parsed));
    CHECK(again(R"("\u001f\b\f\r\t")") == R"("\u001f\b\f\r\t")");
}

TEST_CASE("objects keep their order and the last of repeated keys") {
    CHECK(
        again(R"({"b":1,"a":{"y":[],"x":{}},"c":null})") ==
        R"({"b":1,"a":{"y":[],"x":{}},"c":null})"
    );
    CHECK(again(R"({"a":1,"b":2,"a":3})") == R"({"b":2,"a":3})");
    Json object;
    object.set("a", 1);
    object.set("b", true);
    object.set("a", "x");
    CHECK(to_text(object) == R"({"a":"x","b":true})");
}

TEST_CASE("a foreign answer is repaired, not refused") {
    const auto repaired = [](std::string_view text) {
        const auto parsed = parse_foreign_json(text);
        return parsed.value ? to_text(*parsed.value) : "error: " + parsed.error;
    };
    CHECK(repaired("\"a\xff\xfe z\"") == "\"a\xEF\xBF\xBD\xEF\xBF\xBD z\"");
    CHECK(repaired(R"("\ud800x")") == "\"\xEF\xBF\xBDx\"");
    CHECK(repaired(R"("\udc00")") == "\"\xEF\xBF\xBD\"");
    CHECK(repaired(R"("\ud800\ud800\udc00")") == "\"\xEF\xBF\xBD\xF0\x90\x80\x80\"");
    CHECK(repaired(R"("\\ud800")") == R"("\\ud800")");
    CHECK(repaired("\xEF\xBB\xBF{\"a\": 1}") == R"({"a":1})");
    CHECK(
        repaired("{\"a\": \"\xed\xa0\x80\"}") == "{\"a\":\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"}"
    );
    CHECK(repaired("nonsense").starts_with("error: "));
    CHECK(repaired("\"\\").starts_with("error: "));
    CHECK(repaired("\"\\ud8").starts_with("error: "));
}

TEST_CASE("pointers follow RFC 6901") {
    const auto value = must(R"({"foo":["bar",{"x":1}],"":0,"a/b":1,"m~n":2,"~1":3,"k":null})");
    const auto at = [&](std::string_view pointer) {
        const auto* found = value.at_pointer(pointer);
        return found == nullptr ? "-" : to_text(*found);
    };
    CHECK(at("") == to_text(value));
    CHECK(at("/foo/0") == "\"bar\"");
    CHECK(at("/foo/1/x") == "1");
    CHECK(at("/") == "0");
    CHECK(at("/a~1b") == "1");
    CHECK(at("/m~0n") == "2");
    CHECK(at("/~01") == "3");
    CHECK(at("/k") == "null");
    for (const char* nowhere :
         {"/foo/2",
          "/foo/01",
          "/foo/-",
          "/foo/",
          "/foo/0/x",
          "/k/x",
          "/foo/1x",
          "foo",
          "/m~n",
          "/m~",
          "/foo/99999999999999999999"}) {
        INFO(nowhere);
        CHECK(at(nowhere) == "-");
    }
}

TEST_CASE("equality is by value") {
    const auto equal = [](std::string_view a, std::string_view b) {
        return must(a).equals(must(b));
    };
    CHECK(equal("1", "1.0"));
    CHECK(equal("100", "1e2"));
    CHECK(equal("-0", "0"));
    CHECK(equal("0.10", "1E-1"));
    CHECK_FALSE(equal("9007199254740993", "9007199254740992"));
    CHECK_FALSE(equal("1", "-1"));
    CHECK_FALSE(equal("1", "\"1\""));
    CHECK_FALSE(equal("1", "true"));
    CHECK(equal("1e999999999", "10e999999998"));
    CHECK_FALSE(equal("1e999999999", "1e999999998"));
    CHECK(equal(R"({"a":1,"b":[1,2]})", R"({"b":[1.0,2],"a":1})"));
    CHECK_FALSE(equal(R"({"a":1})", R"({"a":1,"b":null})"));
    CHECK_FALSE(equal("[1,2]", "[2,1]"));
    CHECK_FALSE(equal("null", "false"));
    CHECK(equal("null", "null"));
}

TEST_CASE("whatever an answer says can be stored") {
    using outbox::storable;
    CHECK(
        to_text(storable(std::string("a\0b", 3), 100)) ==
        "\"a\xEF\xBF\xBD"
        "b\""
    );
    CHECK(to_text(storable(std::string("a\xff"), 100)) == "\"a\xEF\xBF\xBD\"");
    Json object;
    object.set(std::string("k\0", 2), Json::Number{"1e131071"});
    CHECK(to_text(storable(object, 100)) == "{\"k\xEF\xBF\xBD\":\"1e131071\"}");
    CHECK(to_text(storable(Json::Number{"0e-20000"}, 100)) == "0");
    CHECK(to_text(storable(Json::Number{"1.50"}, 100)) == "1.50");

    const auto cut = storable(std::string(5'000, 'x'), 1'000);
    CHECK(*cut.find("truncated")->as_bool());
    CHECK(cut.find("bytes")->as_number()->text == "5002");
    CHECK(cut.find("sha256")->as_string()->size() == 64);
    CHECK(to_text(cut).size() <= 1'000);
    const auto wide = storable(std::string(5'000, '\x01'), 1'000);
    CHECK(to_text(wide).size() <= 1'000);
}

TEST_CASE("a large hostile object is read in linear time") {
    std::string text = "{";
    for (int i = 0; i < 200'000; ++i) text += "\"k" + std::to_string(i) + "\":1,";
    text += "\"k0\":2}";
    const auto value = must(text);
    CHECK(value.as_object()->size() == 200'000);
    CHECK(value.as_object()->back().first == "k0");
}
