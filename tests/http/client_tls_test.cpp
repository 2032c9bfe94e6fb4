#include <fstream>
#include <sstream>
#include <string>

#include "tests/http/certificates.hpp"
#include "tests/http/world.hpp"
#include "tests/support/catch.hpp"

using namespace tests;
using outbox::Deadline;

namespace {

// Made once: two dozen openssl processes would be slow.
const Certificates& certificates() {
    static Certificates made;
    static bool issued = [] {
        made.issue("good", "DNS:localhost,IP:127.0.0.1", 2);
        made.issue("other", "DNS:other.example", 2);
        made.issue("expired", "DNS:localhost,IP:127.0.0.1", -1);
        made.issue("client", "DNS:outboxd", 2);
        return true;
    }();
    static_cast<void>(issued);
    return made;
}

StubHttpServer::Options with(const std::string& name) {
    return {
        .certificate_file = certificates().certificate(name), .key_file = certificates().key(name)
    };
}

tools::HttpRequest secure(int port, std::string body = "{}") {
    auto request = post(port, std::move(body));
    request.origin.tls = true;
    request.origin.host = "localhost";
    return request;
}

tools::HttpOptions trusting() {
    return {.ca_file = certificates().authority()};
}

asio::awaitable<void> reset_after_the_request(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    connection.reset();
}

// Ends the TCP connection without TLS's own goodbye: the body may have been cut by anybody.
asio::awaitable<void> cut_without_goodbye(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send("HTTP/1.1 200 OK\r\n\r\nsome of it");
    co_await std::move(sending);
    connection.close();
}

asio::awaitable<void> freeze_after_answering(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send(ok(std::string(100'000, 'x')));
    co_await std::move(sending);
    auto until = Deadline::after(400ms);
    while (!until.passed()) {
    }
}

asio::awaitable<void> stall(StubConnection& connection) {
    auto stalling = connection.stall();
    co_await std::move(stalling);
}

}  // namespace

TEST_CASE("TLS with a certificate authority of one's own") {
    World world(trusting());
    StubHttpServer stub(world.context.get_executor(), answer_ok, with("good"));
    CHECK(summary(world.send(secure(stub.port()))) == "200 {}");
    CHECK(summary(world.send(secure(stub.port(), std::string(3'000'000, 'x')))) == "200 {}");
    CHECK(stub.connections() == 1);
    CHECK(stub.requests().at(1).size() > 3'000'000);
    auto by_address = secure(stub.port());
    by_address.origin.host = "127.0.0.1";
    CHECK(summary(world.send(by_address)) == "200 {}");
}

TEST_CASE("a certificate that proves nothing: nothing is sent") {
    SECTION("another name") {
        World world(trusting());
        StubHttpServer stub(world.context.get_executor(), answer_ok, with("other"));
        auto result = world.send(secure(stub.port()));
        CHECK(summary(result) == "unsent not_sent_tls");
        CHECK_THAT(message(result), ContainsSubstring("hostname mismatch"));
        CHECK(stub.bytes() == 0);
    }
    SECTION("expired") {
        World world(trusting());
        StubHttpServer stub(world.context.get_executor(), answer_ok, with("expired"));
        auto result = world.send(secure(stub.port()));
        CHECK(summary(result) == "unsent not_sent_tls");
        CHECK_THAT(message(result), ContainsSubstring("expired"));
        CHECK(stub.bytes() == 0);
    }
    SECTION("an authority the system does not know") {
        World world;
        StubHttpServer stub(world.context.get_executor(), answer_ok, with("good"));
        CHECK(summary(world.send(secure(stub.port()))) == "unsent not_sent_tls");
        CHECK(stub.bytes() == 0);
    }
    SECTION("unless the configuration says so") {
        World world({.tls_verify = false});
        StubHttpServer stub(world.context.get_executor(), answer_ok, with("other"));
        CHECK(summary(world.send(secure(stub.port()))) == "200 {}");
    }
    SECTION("a file of authorities that is not there") {
        World world({.ca_file = "/no/such/file.pem"});
        auto result = world.send(secure(1));
        CHECK(summary(result) == "unsent not_sent_tls");
        CHECK_THAT(message(result), ContainsSubstring("/no/such/file.pem"));
    }
}

TEST_CASE("TLS against plain text, and the other way round") {
    World world(trusting());
    StubHttpServer plain(world.context.get_executor(), answer_ok);
    auto result = world.send(secure(plain.port()), Deadline::after(1s));
    bool unsent =
        summary(result) == "unsent not_sent_tls" || summary(result) == "unsent not_sent_deadline";
    CHECK(unsent);
    CHECK(plain.requests().empty());

    StubHttpServer stub(world.context.get_executor(), answer_ok, with("good"));
    auto request = post(stub.port(), "{}");
    auto failed = world.send(request);
    CHECK(std::holds_alternative<tools::HttpFailure>(failed));
    CHECK(std::get<tools::HttpFailure>(failed).sent);
}

TEST_CASE("a handshake that never ends is not sent") {
    World world({.connect_timeout = 200ms, .ca_file = certificates().authority()});
    StubHttpServer plain(world.context.get_executor(), stall);
    auto result = world.send(secure(plain.port()));
    CHECK(summary(result) == "unsent not_sent_tls");
    CHECK_THAT(message(result), ContainsSubstring("took too long"));
}

TEST_CASE("faults after the first byte over TLS") {
    World world(trusting());
    SECTION("reset") {
        StubHttpServer stub(world.context.get_executor(), reset_after_the_request, with("good"));
        CHECK(summary(world.send(secure(stub.port()))) == "sent reset");
        CHECK(stub.requests().size() == 1);
    }
    SECTION("an end that is none") {
        StubHttpServer stub(world.context.get_executor(), cut_without_goodbye, with("good"));
        auto result = world.send(secure(stub.port()));
        CHECK(std::holds_alternative<tools::HttpFailure>(result));
        CHECK(std::get<tools::HttpFailure>(result).sent);
    }
    SECTION("time-out") {
        StubHttpServer stub(world.context.get_executor(), stall, with("good"));
        CHECK(summary(world.send(secure(stub.port()), Deadline::after(300ms))) == "sent timeout");
        auto big = secure(stub.port(), std::string(1'000'000, 'x'));
        CHECK(summary(world.send(big, Deadline::after(300ms))) == "sent timeout");
    }
    SECTION("an answer that arrived whole counts") {
        StubHttpServer stub(world.context.get_executor(), freeze_after_answering, with("good"));
        auto result = world.send(secure(stub.port()), Deadline::after(200ms));
        REQUIRE(std::holds_alternative<tools::HttpResponse>(result));
        CHECK(std::get<tools::HttpResponse>(result).body.size() == 100'000);
    }
}

namespace {

std::string text_of(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
}

using Read = std::variant<tools::ClientCertificate, tools::CertificateProblem>;

Read read_certificate(
    const std::string& certificate,
    const std::string& key,
    std::chrono::system_clock::time_point now = std::chrono::system_clock::now()
) {
    return tools::read_client_certificate("desk", certificate, key, now);
}

std::shared_ptr<const tools::ClientCertificate> client_certificate() {
    auto read = read_certificate(
        text_of(certificates().certificate("client")), text_of(certificates().key("client"))
    );
    return std::make_shared<const tools::ClientCertificate>(
        std::get<tools::ClientCertificate>(std::move(read))
    );
}

StubHttpServer::Options asking_for_one() {
    auto options = with("good");
    options.client_authority = certificates().authority();
    return options;
}

}  // namespace

TEST_CASE("a server that asks for a certificate gets it") {
    auto options = trusting();
    options.certificate = client_certificate();
    World world(options);
    StubHttpServer stub(world.context.get_executor(), answer_ok, asking_for_one());
    CHECK(summary(world.send(secure(stub.port()))) == "200 {}");
    CHECK(summary(world.send(secure(stub.port()))) == "200 {}");
    CHECK(stub.connections() == 1);
}

TEST_CASE("without the certificate it asks for there is no answer, and no request was heard") {
    World world(trusting());
    StubHttpServer stub(world.context.get_executor(), answer_ok, asking_for_one());
    const auto result = world.send(secure(stub.port()));
    // TLS 1.3 refuses a client only after its first bytes: this side cannot tell any more.
    CHECK(std::holds_alternative<tools::HttpFailure>(result));
    CHECK(stub.requests().empty());
}

TEST_CASE("a certificate that expires while the daemon runs: nothing is sent") {
    auto options = trusting();
    auto expired = *client_certificate();
    expired.expires = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    options.certificate = std::make_shared<const tools::ClientCertificate>(expired);
    World world(options);
    StubHttpServer stub(world.context.get_executor(), answer_ok, asking_for_one());
    const auto result = world.send(secure(stub.port()));
    CHECK(summary(result) == "unsent not_sent_credential");
    CHECK_THAT(message(result), ContainsSubstring("desk has expired"));
    CHECK(stub.connections() == 0);
}

TEST_CASE("what can be wrong with a certificate and its key is found when the file loads") {
    const auto certificate = text_of(certificates().certificate("client"));
    const auto key = text_of(certificates().key("client"));
    const auto problem = [](const Read& read) {
        const auto* found = std::get_if<tools::CertificateProblem>(&read);
        return found ? (found->in_key ? "key: " : "certificate: ") + found->message : "none";
    };
    CHECK(problem(read_certificate(certificate, key)) == "none");
    // A chain behind it, and line ends that were trimmed.
    CHECK(
        problem(read_certificate(certificate + text_of(certificates().authority()), key)) == "none"
    );
    CHECK(problem(read_certificate(certificate.substr(0, certificate.size() - 1), key)) == "none");
    CHECK(problem(read_certificate("hello", key)) == "certificate: holds no certificate");
    CHECK(problem(read_certificate(key, key)) == "certificate: holds no certificate");
    CHECK(problem(read_certificate(certificate, "hello")) == "key: holds no private key");
    CHECK(problem(read_certificate(certificate, certificate)) == "key: holds no private key");
    CHECK(
        problem(read_certificate(certificate, text_of(certificates().key("other")))) ==
        "key: the key is not that of the certificate"
    );
    CHECK_THAT(
        problem(read_certificate(
            text_of(certificates().certificate("expired")), text_of(certificates().key("expired"))
        )),
        ContainsSubstring("certificate: the certificate expired at 20")
    );
    const auto now = std::chrono::system_clock::now();
    const std::chrono::hours day{24};
    CHECK_THAT(
        problem(read_certificate(certificate, key, now + 3 * day)), ContainsSubstring("expired at")
    );
    CHECK_THAT(
        problem(read_certificate(certificate, key, now - 3 * day)),
        ContainsSubstring("is not valid before")
    );
    const auto locked = certificates().key("client") + ".locked";
    REQUIRE(
        std::system(("openssl pkey -aes256 -passout pass:word -in " + certificates().key("client") +
                     " -out " + locked + " 2>/dev/null")
                        .c_str()) == 0
    );
    CHECK(
        problem(read_certificate(certificate, text_of(locked))) ==
        "key: the key is under a passphrase"
    );
}
