#include "tools/secret_mask.hpp"

#include "tests/unit/tools/tool_fixture.hpp"

using namespace test;

namespace {

tools::SecretMask mask() {
    config::Credential bearer;
    bearer.secret.value = "s3cr3t/token";
    config::Credential basic;
    basic.kind = config::Credential::Kind::basic;
    basic.user_or_name = "bot";
    basic.secret.value = "passw0rd";
    config::Credential oauth;
    oauth.kind = config::Credential::Kind::oauth2_client_credentials;
    oauth.user_or_name = "me";
    oauth.secret.value = "cl1ent secret";
    config::Credential certificate;
    certificate.kind = config::Credential::Kind::mtls;
    certificate.secret.value = "a key, which is never sent";
    config::Credential tiny;
    tiny.secret.value = "abc";
    return tools::SecretMask(
        {{"desk", bearer},
         {"legacy", basic},
         {"tiny", tiny},
         {"graph", oauth},
         {"cert", certificate}}
    );
}

}  // namespace

TEST_CASE("a secret that the other side repeats is reported by nobody") {
    SECTION("in an error") {
        outbox::Outcome outcome = outbox::Rejected{
            .error = {"Bearer s3cr3t/token", "bad token s3cr3t/token, abc; or s3cr3t%2Ftoken"}
        };
        mask().apply(outcome);
        const auto& error = std::get<outbox::Rejected>(outcome).error;
        CHECK(error.code == "Bearer ***");
        CHECK(error.message == "bad token ***, abc; or ***");
    }
    SECTION("a client secret, as it is sent") {
        outbox::Outcome outcome = outbox::Rejected{
            .error = {"x", "cl1ent secret, cl1ent%20secret, Basic bWU6Y2wxZW50JTIwc2VjcmV0"}
        };
        mask().apply(outcome);
        CHECK(std::get<outbox::Rejected>(outcome).error.message == "***, ***, Basic ***");
    }
    SECTION("in a result, at any depth, names included") {
        outbox::Outcome outcome = outbox::Succeeded{
            .result = json(R"({"id": 1, "passw0rd": ["x", {"sent": "Basic Ym90OnBhc3N3MHJk"}]})"),
            .note = ""
        };
        mask().apply(outcome);
        CHECK(
            outbox::to_text(std::get<outbox::Succeeded>(outcome).result) ==
            R"({"id":1,"***":["x",{"sent":"Basic ***"}]})"
        );
    }
    SECTION("a token that was fetched, the password of a proxy") {
        auto learning = mask();
        learning.add("pr0xy/word");
        for (int i = 0; i < 100; ++i) learning.learn("token-" + std::to_string(i));
        learning.learn("token-99");
        outbox::Outcome outcome = outbox::Rejected{
            .error = {"status_401", "bad token-98, token-99 of pr0xy/word or pr0xy%2Fword; token-1"}
        };
        learning.apply(outcome);
        // Of a hundred the last ones are known.
        CHECK(
            std::get<outbox::Rejected>(outcome).error.message ==
            "bad ***, *** of *** or ***; token-1"
        );
    }
    SECTION("in a verdict") {
        outbox::Verdict verdict = outbox::Inconclusive{{"status_401", "who is passw0rd?"}};
        mask().apply(verdict);
        CHECK(std::get<outbox::Inconclusive>(verdict).error.message == "who is ***?");
        outbox::Verdict found = outbox::Found{.result = json(R"("s3cr3t/token")"), .note = ""};
        mask().apply(found);
        CHECK(outbox::to_text(std::get<outbox::Found>(found).result) == R"("***")");
    }
}
