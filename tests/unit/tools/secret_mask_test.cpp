#include "tools/secret_mask.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

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

namespace {

// Every way in which an attempt or a probe says something, each saying `text`.
std::vector<std::string> all_said(const tools::SecretMask& mask, const std::string& text) {
    const outbox::Error error{text, text};
    const Json result(Json::Object{{text, Json(Json::Array{Json(text)})}});
    std::vector<std::string> said;
    const auto add = [&](const outbox::Error& one) { said.push_back(one.code + one.message); };
    for (outbox::Outcome outcome : {
             outbox::Outcome(outbox::Succeeded{result, text}),
             outbox::Outcome(outbox::Accepted{result}),
             outbox::Outcome(outbox::Rejected{.error = error}),
             outbox::Outcome(outbox::RetryLater{.error = error, .after = std::nullopt}),
             outbox::Outcome(outbox::Unknown{outbox::Cause::other, error}),
             outbox::Outcome(outbox::Attention{error}),
         }) {
        mask.apply(outcome);
        if (const auto* o = std::get_if<outbox::Succeeded>(&outcome)) {
            said.push_back(outbox::to_text(o->result) + o->note);
        } else if (const auto* a = std::get_if<outbox::Accepted>(&outcome)) {
            said.push_back(outbox::to_text(a->result));
        } else if (const auto* r = std::get_if<outbox::Rejected>(&outcome)) {
            add(r->error);
        } else if (const auto* l = std::get_if<outbox::RetryLater>(&outcome)) {
            add(l->error);
        } else if (const auto* u = std::get_if<outbox::Unknown>(&outcome)) {
            add(u->error);
        } else {
            add(std::get<outbox::Attention>(outcome).error);
        }
    }
    for (outbox::Verdict verdict : {
             outbox::Verdict(outbox::Found{result, text}),
             outbox::Verdict(outbox::Pending{text}),
             outbox::Verdict(outbox::Conflict{error}),
             outbox::Verdict(outbox::Inconclusive{error}),
         }) {
        mask.apply(verdict);
        if (const auto* f = std::get_if<outbox::Found>(&verdict)) {
            said.push_back(outbox::to_text(f->result) + f->note);
        } else if (const auto* p = std::get_if<outbox::Pending>(&verdict)) {
            said.push_back(p->note);
        } else if (const auto* c = std::get_if<outbox::Conflict>(&verdict)) {
            add(c->error);
        } else {
            add(std::get<outbox::Inconclusive>(verdict).error);
        }
    }
    return said;
}

}  // namespace

TEST_CASE("a secret is masked wherever the file has it, and wherever text goes out") {
    const auto folder = std::filesystem::temp_directory_path() / "outboxd-mask-test";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "one") << "first-s3cret\n";
    std::ofstream(folder / "two") << "second-s3cret\n";
    ::setenv("CREDENTIALS_DIRECTORY", folder.c_str(), 1);
    ::setenv("OUTBOXD_MASK_TEST", "third-s3cret", 1);
    const std::string http = "type: http, method: POST, url: 'https://h.example/t', ";
    const std::string one = "${cred:one}";
    const std::string command = "type: command, exit_codes: { 0: succeeded, default: unknown }, ";
    const std::string places[] = {
        http + "headers: { X-Custom: 'Key " + one + "' }",
        http + "query: { k: '" + one + "' }",
        http + "json: { deep: [ { k: '" + one + "' } ] }",
        http + "form: { k: '" + one + "' }",
        "type: http, method: POST, url: 'https://h.example/" + one + "/t'",
        "type: http, method: POST, url: 'https://h.example/t', text: 'a " + one + " b'",
        command + "argv: [/bin/true, '--key=" + one + "']",
        command + "argv: [/bin/true], env: { ANY: 'x" + one + "y' }",
        command + "argv: [/bin/true], env: { ANY: '${file:" + (folder / "one").string() + "}' }",
        command + "argv: [/bin/true], stdin: '" + one + "'",
        "type: mcp, command: [/bin/true], env: { ANY: '" + one + "' }, tool: t, arguments: {}",
        "type: mcp, url: 'https://h.example/mcp', tool: t, arguments: { k: '" + one + "' }",
        "type: mcp, url: 'https://h.example/mcp', tool: t, arguments: {}, meta: { x.y/k: '" + one +
            "' }",
        "type: sql, dsn: 'host=h', statement: 'SELECT :k::text', parameters: { k: '" + one + "' }",
        // By the member's name also what the environment and the file itself say.
        command + "argv: [/bin/true], env: { API_TOKEN: '${env:OUTBOXD_MASK_TEST}' }",
        command + "argv: [/bin/true], env: { API_TOKEN: 'third-s3cret' }",
        http + "headers: { Authorization: 'Token ${env:OUTBOXD_MASK_TEST}' }",
        // Several in one text.
        http + "headers: { X-A: 'a=" + one + ";b=${env:OUTBOXD_MASK_TEST}$${;c=${cred:two}' }",
    };
    for (const auto& place : places) {
        for (const bool look_up : {false, true}) {
            const bool same_form = place.starts_with("type: mcp");
            if (look_up && !same_form) continue;
            const auto found =
                look_up ? ", verdicts: [ { when: { is_error: false }, then: found } ]" : "";
            const auto given = "{ " + place + found + " }\n";
            const auto tool = look_up ? "  t:\n    effect: write\n    execute: { " + http +
                                            "json: {} }\n    reconcile: " + given
                                      : "  t:\n    effect: write\n    execute: " + given +
                                            "    reconcile: { type: manual, reason: a test }\n";
            INFO(tool);
            const auto config = configuration(tool);
            const tools::SecretMask mask(config.credentials, config.tools);
            const bool third = place.find("third-s3cret") != std::string::npos ||
                               place.find("OUTBOXD_MASK_TEST") != std::string::npos;
            const bool several = place.find("${cred:two}") != std::string::npos;
            const std::string secret = third && !several ? "third-s3cret" : "first-s3cret";
            for (const auto& text : all_said(mask, "it said " + secret + "!")) {
                INFO(text);
                CHECK(text.find("s3cret") == std::string::npos);
                CHECK(text.find("***") != std::string::npos);
            }
            if (!several) continue;
            for (const auto& text : all_said(mask, "second-s3cret")) {
                CHECK(text.find("s3cret") == std::string::npos);
            }
            // What the environment says under a name that tells nothing is no secret.
            CHECK(all_said(mask, "third-s3cret").front().find("third-s3cret") != std::string::npos);
        }
    }
    std::filesystem::remove_all(folder);
}

TEST_CASE("a text that was cut within a secret does not show its beginning") {
    const auto cut = [](const std::string& text) {
        outbox::Outcome outcome = outbox::Rejected{.error = {"x", text}};
        mask().apply(outcome);
        return std::get<outbox::Rejected>(outcome).error.message;
    };
    CHECK(cut("it said: s3cr3t/tok") == "it said: ***");
    CHECK(cut("it said: passw0") == "it said: ***");
    CHECK(cut("it said: passw") == "it said: passw");  // too little to be told from a word
    CHECK(cut("passw0 is no word") == "passw0 is no word");
}
