// Answers that come compressed, over real sockets.
#include <zlib.h>

#include <string>

#include "tests/http/world.hpp"
#include "tests/support/catch.hpp"

using namespace tests;

namespace {

std::string gzip(const std::string& text) {
    z_stream stream{};
    REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
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

// What the test wants to be answered.
std::string next_answer;

asio::awaitable<void> answer_next(StubConnection& connection) {
    while (true) {
        auto reading = connection.read_request();
        const auto request = co_await std::move(reading);
        if (request.empty()) co_return;
        auto sending = connection.send(next_answer);
        co_await std::move(sending);
    }
}

std::string with_length(const std::string& body, const std::string& encoding = "gzip") {
    return "HTTP/1.1 200 OK\r\nContent-Encoding: " + encoding +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string in_chunks(const std::string& body) {
    std::string out =
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (const char c : body) out += std::string("1\r\n") + c + "\r\n";
    return out + "0\r\n\r\n";
}

}  // namespace

TEST_CASE("a compressed answer is decoded, however it is framed") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_next);
    const std::string body = R"({"id": "T-1"})";
    for (const auto& answer :
         {with_length(gzip(body)), in_chunks(gzip(body)), with_length(body, "identity")}) {
        next_answer = answer;
        CHECK(summary(world.send(get(stub.port()))) == "200 " + body);
    }
    CHECK(stub.connections() == 1);
    CHECK_THAT(stub.requests().at(0), ContainsSubstring("\r\nAccept-Encoding: gzip\r\n"));
    // Who asks for something else gets what it asks for.
    auto request = get(stub.port());
    request.headers.emplace_back("accept-encoding", "identity");
    (void)world.send(request);
    CHECK(stub.requests().back().find("gzip") == std::string::npos);
}

TEST_CASE("a zip bomb takes no more than the limit, and the connection goes on") {
    World world({.max_response_bytes = 200'000});
    StubHttpServer stub(world.context.get_executor(), answer_next);
    next_answer = with_length(gzip(std::string(100'000'000, 'x')));
    const auto result = world.send(post(stub.port(), "{}"));
    REQUIRE(std::holds_alternative<tools::HttpResponse>(result));
    const auto& response = std::get<tools::HttpResponse>(result);
    CHECK(response.truncated);
    CHECK(response.body.size() == 200'000);
    next_answer = with_length(gzip("{}"));
    CHECK(summary(world.send(post(stub.port(), "{}"))) == "200 {}");
    CHECK(stub.connections() == 1);
    // Compressed it is over the limit already.
    std::string noise;
    for (unsigned n = 12345; noise.size() < 1'000'000; n = n * 1103515245U + 12345U) {
        noise += static_cast<char>(n >> 16U);
    }
    next_answer = with_length(gzip(noise));
    const auto cut = world.send(post(stub.port(), "{}"));
    REQUIRE(std::holds_alternative<tools::HttpResponse>(cut));
    CHECK(std::get<tools::HttpResponse>(cut).truncated);
}

TEST_CASE("a damaged compressed answer is unreadable: it was sent, and nobody knows") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_next);
    const auto whole = gzip(R"({"id": 7})");
    for (const auto& body : {std::string("{\"id\": 7}"), whole.substr(0, whole.size() - 1)}) {
        next_answer = with_length(body);
        const auto result = world.send(post(stub.port(), "{}"));
        CHECK(summary(result) == "sent unreadable");
        CHECK(std::get<tools::HttpFailure>(result).cause == outbox::Cause::unreadable);
    }
    // An encoding that nobody asked for is left as it is.
    next_answer = with_length("???", "br");
    CHECK(summary(world.send(get(stub.port()))) == "200 ???");
}
