#include "daemon/text.hpp"

#include "tests/support/catch.hpp"

using namespace outboxd;

TEST_CASE("a JSON string escapes what JSON and terminals must not see") {
    CHECK(json_quoted("a\"b\\c\nd") == R"("a\"b\\c\nd")");
    CHECK(json_quoted(std::string_view("\0\x1b\x7f", 3)) == R"("\u0000\u001b\u007f")");
    CHECK(json_quoted("\xc2\x9b") == R"("\u009b")");  // C1: a terminal's CSI in one character
    CHECK(json_quoted("Müller 東京 😀") == "\"Müller 東京 😀\"");
}

TEST_CASE("broken UTF-8 becomes the replacement character, byte by byte") {
    CHECK(
        json_quoted("a\xff"
                    "b") ==
        "\"a\xef\xbf\xbd"
        "b\""
    );
    CHECK(json_quoted("\xc0\xaf") == "\"\xef\xbf\xbd\xef\xbf\xbd\"");                  // overlong
    CHECK(json_quoted("\xed\xa0\x80") == "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // surrogate
    CHECK(json_quoted("\xe6\x9d") == "\"\xef\xbf\xbd\xef\xbf\xbd\"");                  // cut off
    CHECK(json_quoted("\xf4\x90\x80\x80").find("\xf4") == std::string::npos);  // past U+10FFFF
}

TEST_CASE("printable text spells out controls and keeps the rest") {
    CHECK(printable("a\nb\tc\r") == "a\\nb\\tc\\r");
    CHECK(printable("\x1b[2J") == "\\x1b[2J");
    CHECK(printable("\xff") == "\\xff");
    CHECK(printable("naïve") == "naïve");
}

TEST_CASE("width counts code points") {
    CHECK(code_points("naïve") == 5);
    CHECK(code_points("") == 0);
}
