#include "tools/content_decoding.hpp"

#include <zlib.h>

#include "tests/support/catch.hpp"

namespace {

// Formats of deflateInit2: 15 + 16 gzip, 15 zlib, -15 raw.
std::string deflated(const std::string& text, int format = 15 + 16) {
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, format, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string out(deflateBound(&stream, text.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

tools::HttpResponse response(std::string body, std::string encoding, bool truncated = false) {
    tools::HttpResponse result;
    result.status = 200;
    result.headers.emplace_back("content-encoding", std::move(encoding));
    result.body = std::move(body);
    result.truncated = truncated;
    return result;
}

constexpr std::size_t kLimit = 100'000;

// The body, "cut N" or "damaged".
std::string decoded(tools::HttpResponse answer, std::size_t limit = kLimit) {
    const auto problem = tools::decode_content(answer, limit);
    if (problem) {
        CHECK_THAT(*problem, ContainsSubstring("damaged"));
        return "damaged";
    }
    return answer.truncated ? "cut " + std::to_string(answer.body.size()) : answer.body;
}

}  // namespace

TEST_CASE("what servers call gzip and deflate") {
    const std::string text = R"({"id": "ü"})";
    for (const auto* name : {"gzip", "GZIP", "x-gzip"}) {
        CHECK(decoded(response(deflated(text), name)) == text);
    }
    CHECK(decoded(response(deflated(text, 15), "deflate")) == text);
    CHECK(decoded(response(deflated(text, -15), "deflate")) == text);
    CHECK(decoded(response(deflated(""), "gzip")).empty());
    // Several members, and padding behind them.
    CHECK(decoded(response(deflated("a") + deflated("") + deflated("b"), "gzip")) == "ab");
    CHECK(decoded(response(deflated("a") + std::string(7, '\0'), "gzip")) == "a");
}

TEST_CASE("what is not to be decoded stays as it is") {
    for (const auto* name : {"identity", "br", "zstd", "gzip, gzip", ""}) {
        CAPTURE(name);
        CHECK(decoded(response("abc", name)) == "abc");
    }
    // Of HEAD, 204 and 304.
    CHECK(decoded(response("", "gzip")).empty());
    tools::HttpResponse plain;
    plain.body = deflated("a");
    CHECK(decoded(plain) == deflated("a"));
}

TEST_CASE("a zip bomb is cut at the limit, whatever it promises") {
    // 100 MB in 100 kB, and the same once more around it.
    const auto bomb = deflated(std::string(100'000'000, 'x'));
    CHECK(bomb.size() < 110'000);
    CHECK(decoded(response(bomb, "gzip")) == "cut 100000");
    CHECK(decoded(response(bomb, "gzip"), 0) == "cut 0");
    std::string members;
    for (int i = 0; i < 1000; ++i) members += deflated(std::string(1000, 'x'));
    CHECK(decoded(response(members, "gzip")) == "cut 100000");
    CHECK(decoded(response(deflated(std::string(kLimit, 'x')), "gzip")).size() == kLimit);
    CHECK(decoded(response(deflated(std::string(kLimit + 1, 'x')), "gzip")) == "cut 100000");
}

TEST_CASE("a damaged body is no body, at whichever byte") {
    std::string text;
    for (int i = 0; i < 300; ++i) text += std::to_string(i * i);
    const auto whole = deflated(text);
    CHECK(decoded(response("{\"id\": 7}", "gzip")) == "damaged");
    for (std::size_t length = 1; length < whole.size(); ++length) {
        CAPTURE(length);
        CHECK(decoded(response(whole.substr(0, length), "gzip")) == "damaged");
    }
    // The checksum at its end is looked at.
    auto wrong = whole;
    wrong[wrong.size() - 6] = static_cast<char>(wrong[wrong.size() - 6] ^ 1);
    CHECK(decoded(response(wrong, "gzip")) == "damaged");
    // Cut by our own limit it is only short.
    const auto half = whole.substr(0, whole.size() / 2);
    CHECK(decoded(response(half, "gzip", true)).rfind("cut ", 0) == 0);
}
