#include "config/yaml.hpp"

#include "config/emit.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/config/files.hpp"

using config::Value;
using Kind = config::Value::Kind;

namespace {

Value parse(const std::string& text) {
    config::Diagnostics diagnostics;
    auto value = config::parse_yaml(std::make_shared<const std::string>("f"), text, diagnostics);
    REQUIRE(config_test::text_of(diagnostics).empty());
    REQUIRE(value);
    return *value;
}

std::string typed(const std::string& text) {
    const auto tree = parse("v: " + text + "\n");
    const auto& value = *tree.find("v");
    switch (value.kind) {
        case Kind::null:
            return "null";
        case Kind::boolean:
            return "bool " + value.text;
        case Kind::number:
            return "number " + value.text;
        case Kind::string:
            return "string " + value.text;
        case Kind::sequence:
            return "sequence";
        case Kind::mapping:
            return "mapping";
    }
    return {};
}

}  // namespace

TEST_CASE("every escape of YAML makes whole characters", "[config]") {
    CHECK(
        typed(R"("a\Nb\_c")") ==
        "string a\xc2\x85"
        "b\xc2\xa0"
        "c"
    );
    CHECK(typed(R"("\L\P\xe9\u20ac\U0001f600")") == "string \xe2\x80\xa8\xe2\x80\xa9é€😀");
    CHECK(typed("\"é\\N€\\_\"") == "string é\xc2\x85€\xc2\xa0");
    CHECK(parse(R"({"k\_": 1})").members.at(0).key == "k\xc2\xa0");
}

TEST_CASE("what is no UTF-8 is said at its place", "[config]") {
    for (const auto* bytes :
         {"\xff",
          "\x80",
          "\xc0\xaf",
          "\xe0\x80\xaf",
          "\xed\xa0\x80",
          "\xf0\x80\x80\xaf",
          "\xf4\x90\x80\x80",
          "\xf5\x80\x80\x80",
          "\xe2\x82",
          "\xc3"}) {
        config::Diagnostics diagnostics;
        const auto text = std::string("v: \"é") + bytes + "\"\n";
        const auto value =
            config::parse_yaml(std::make_shared<const std::string>("f"), text, diagnostics);
        CHECK_FALSE(value);
        CHECK(
            config_test::text_of(diagnostics) ==
            "f:1:6: error: this is not UTF-8\n  hint: save the file as UTF-8\n"
        );
    }
}

TEST_CASE("UTF-16 and UTF-32 are not guessed", "[config]") {
    using namespace std::literals;
    for (const auto text : {"v\0:\0 \0a\0\n\0"sv, "v\0\0\0:\0\0\0"sv, "\0v\0:"sv, "v: a\0b\n"sv}) {
        config::Diagnostics diagnostics;
        const auto value = config::parse_yaml(
            std::make_shared<const std::string>("f"), std::string(text), diagnostics
        );
        CHECK_FALSE(value);
        CHECK_THAT(config_test::text_of(diagnostics), ContainsSubstring("this is not UTF-8"));
    }
}

TEST_CASE("a mistake is told in whole characters", "[config]") {
    config::Diagnostics diagnostics;
    CHECK_FALSE(config::parse_yaml(
        std::make_shared<const std::string>("f\xff"), "v: \"\\é\"\n", diagnostics
    ));
    REQUIRE(diagnostics.all().size() == 1);
    CHECK_THAT(config::to_json(diagnostics.all()[0]), ContainsSubstring("\"f\xef\xbf\xbd\""));
    CHECK_THAT(diagnostics.all()[0].message, ContainsSubstring("unknown escape character"));
    CHECK(diagnostics.all()[0].message.find('\xc3') == std::string::npos);
}

TEST_CASE("plain scalars are typed by the core schema", "[config]") {
    CHECK(typed("") == "null");
    CHECK(typed("~") == "null");
    CHECK(typed("Null") == "null");
    CHECK(typed("true") == "bool true");
    CHECK(typed("FALSE") == "bool false");
    CHECK(typed("yes") == "string yes");
    CHECK(typed("on") == "string on");
    CHECK(typed("0") == "number 0");
    CHECK(typed("-12") == "number -12");
    CHECK(typed("+12") == "number 12");
    CHECK(typed("9007199254740993") == "number 9007199254740993");
    CHECK(typed("20.0") == "number 20.0");
    CHECK(typed("1e400") == "number 1e400");
    CHECK(typed(".5") == "number 0.5");
    CHECK(typed("-.5e-3") == "number -0.5e-3");
    CHECK(typed("5.") == "number 5");
    CHECK(typed("0x1F") == "number 31");
    CHECK(typed("0o17") == "number 15");
    CHECK(typed("0xffffffffffffffffffff") == "string 0xffffffffffffffffffff");
    CHECK(typed("1_000") == "string 1_000");
    CHECK(typed("2026-01-02") == "string 2026-01-02");
    CHECK(typed("1.2.3") == "string 1.2.3");
    CHECK(typed("[]") == "sequence");
    CHECK(typed("1e") == "string 1e");
    CHECK(typed("30s") == "string 30s");
}

TEST_CASE("quoted and block scalars are strings", "[config]") {
    CHECK(typed("\"1\"") == "string 1");
    CHECK(typed("'true'") == "string true");
    CHECK(typed("\"\"") == "string ");
    CHECK(typed("!!str 5") == "string 5");
    CHECK(typed("|\n  1\n") == "string 1\n");
}

TEST_CASE("places start at 1 and keys have their own", "[config]") {
    const auto tree = parse("a:\n  - x\n  - { b: \"y\" , c: }\nd:\ne: 1\n");
    const auto* a = tree.member("a");
    REQUIRE(a);
    CHECK(*a->key_mark.file == "f");
    CHECK(a->key_mark.line == 1);
    CHECK(a->key_mark.column == 1);
    CHECK(a->value.items.at(0).mark.line == 2);
    CHECK(a->value.items.at(0).mark.column == 5);
    const auto* b = a->value.items.at(1).member("b");
    REQUIRE(b);
    CHECK(b->key_mark.column == 7);
    CHECK(b->value.mark.column == 10);
    // An empty value is at its key, not at what comes behind it.
    CHECK(tree.find("d")->mark.line == 4);
    CHECK(tree.find("nothing") == nullptr);
}

TEST_CASE("aliases are copies that keep the place of the original", "[config]") {
    const auto tree = parse("a: &x { p: 1 }\nb: *x\n");
    REQUIRE(tree.find("b"));
    CHECK(tree.find("b")->find("p")->text == "1");
    CHECK(tree.find("b")->mark.line == 1);
}

TEST_CASE("an empty document is null", "[config]") {
    CHECK(parse("").is(Kind::null));
    CHECK(parse("# nothing\n").mark.line == 1);
}

TEST_CASE("what is emitted reads as the same values", "[config]") {
    const auto* text = R"(plain: word
quoted: "true"
number: 1e400
text_number: "12"
nothing: null
"odd key: #": "a: b # c"
"-": "- x"
empty: ""
spaces: " a "
lines: "a\nb\n"
control: "\x01\x7f\t"
quote: "\"\\"
dollar: "$${literal}"
list: [1, [], {}, [a, [b]], { c: d, e: [f] }]
unicode: "ü 漢"
)";
    const auto once = config::to_yaml(parse(text));
    INFO(once);
    const auto again = parse(once);
    // `$${` was escaped once more, as substitution has not been here.
    CHECK(once.find("$$${literal}") != std::string::npos);
    CHECK(again.find("control")->text == "\x01\x7f\t");
    CHECK(again.find("odd key: #")->text == "a: b # c");
    CHECK(again.find("quoted")->is(Kind::string));
    CHECK(again.find("number")->text == "1e400");
    CHECK(again.find("text_number")->is(Kind::string));
    CHECK(again.find("list")->items.at(3).items.at(1).items.at(0).text == "b");
    CHECK(again.find("list")->items.at(4).find("e")->items.at(0).text == "f");
    CHECK(again.find("list")->items.at(1).is(Kind::sequence));
    CHECK(again.find("list")->items.at(2).is(Kind::mapping));
    CHECK(again.find("spaces")->text == " a ");
    CHECK(again.find("lines")->text == "a\nb\n");
}
