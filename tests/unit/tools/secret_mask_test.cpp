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
    config::Credential tiny;
    tiny.secret.value = "abc";
    return tools::SecretMask({{"desk", bearer}, {"legacy", basic}, {"tiny", tiny}});
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
    SECTION("in a verdict") {
        outbox::Verdict verdict = outbox::Inconclusive{{"status_401", "who is passw0rd?"}};
        mask().apply(verdict);
        CHECK(std::get<outbox::Inconclusive>(verdict).error.message == "who is ***?");
        outbox::Verdict found = outbox::Found{.result = json(R"("s3cr3t/token")"), .note = ""};
        mask().apply(found);
        CHECK(outbox::to_text(std::get<outbox::Found>(found).result) == R"("***")");
    }
}
