#include "tools/encoding.hpp"

#include "outbox/sha256.hpp"
#include "tests/support/catch.hpp"

using namespace tools;

TEST_CASE("base64, base64url, base32hex and hex agree with RFC 4648") {
    CHECK(base64("") == "");
    CHECK(base64("f") == "Zg==");
    CHECK(base64("fo") == "Zm8=");
    CHECK(base64("foo") == "Zm9v");
    CHECK(base64("foobar") == "Zm9vYmFy");
    CHECK(base64("\xfb\xff") == "+/8=");
    CHECK(base64url("\xfb\xff") == "-_8");
    CHECK(base32hex("f") == "co");
    CHECK(base32hex("fooba") == "cpnmuoj1");
    CHECK(base32hex("foobar") == "cpnmuoj1e8");
    CHECK(hex("\x01\xab") == "01ab");
    // Long input: the bit buffer must not overflow.
    CHECK(base64(std::string(3'000, 'a')).substr(3'996) == "YWFh");
}

TEST_CASE("percent encoding leaves nothing that a URL gives a meaning") {
    CHECK(percent_encode("aZ09-._~") == "aZ09-._~");
    CHECK(percent_encode("a/b?c#d%2f &=+") == "a%2Fb%3Fc%23d%252f%20%26%3D%2B");
    CHECK(percent_encode(std::string("\0\r\n", 3)) == "%00%0D%0A");
    CHECK(percent_encode("ü") == "%C3%BC");
}

TEST_CASE("a digest as uuid or short is the same for the text and for its hex digest") {
    const auto digest = outbox::sha256_hex("op-1");
    CHECK(digest_uuid("op-1") == digest_uuid(digest));
    CHECK(digest_short("op-1") == digest_short(digest));
    const auto uuid = digest_uuid("op-1");
    REQUIRE(uuid.size() == 36);
    CHECK(uuid[14] == '4');
    CHECK(std::string("89ab").find(uuid[19]) != std::string::npos);
    CHECK(digest_short("op-1").size() == 22);
    CHECK(digest_short("op-1") == base64url(digest_bytes("op-1")).substr(0, 22));
}

TEST_CASE("escapes for JQL, XML and iCalendar") {
    CHECK(jql_literal("a\" OR project = \\x\n") == "\"a\\\" OR project = \\\\x\\n\"");
    CHECK(xml_escape("<a b='c'>&\"") == "&lt;a b=&apos;c&apos;&gt;&amp;&quot;");
    CHECK_FALSE(xml_escape(std::string("a\0b", 3)).has_value());
    CHECK(ical_escape("a;b,c\\d\r\ne\nf\rg") == "a\\;b\\,c\\\\d\\ne\\nf\\ng");
    CHECK_FALSE(ical_escape("a\x01").has_value());
}
