#include "config/substitute.hpp"

#include "config/yaml.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/config/files.hpp"

using config::Value;
using config_test::Folder;
using config_test::must_load;
using config_test::Variable;

namespace {

struct Result {
    Value value;
    std::string said;
};

Result substituted(const std::string& scalar, const std::string& folder = ".") {
    config::Diagnostics diagnostics;
    const auto file = std::make_shared<const std::string>("f");
    auto tree = config::parse_yaml(file, "v: " + scalar + "\n", diagnostics);
    REQUIRE(tree);
    config::substitute(*tree, folder, diagnostics);
    return {*tree->find("v"), config_test::text_of(diagnostics)};
}

std::string text_of(const std::string& scalar) {
    const auto result = substituted(scalar);
    CHECK(result.said.empty());
    return result.value.text;
}

}  // namespace

TEST_CASE("environment variables and their defaults", "[config]") {
    const Variable set("OUTBOX_TEST_A", "one");
    const Variable empty("OUTBOX_TEST_EMPTY", "");
    const Variable unset("OUTBOX_TEST_B", nullptr);
    CHECK(text_of("${env:OUTBOX_TEST_A}") == "one");
    CHECK(text_of("\"<${env:OUTBOX_TEST_A}|${env:OUTBOX_TEST_A}>\"") == "<one|one>");
    CHECK(text_of("${env:OUTBOX_TEST_B:-two}") == "two");
    CHECK(text_of("\"${env:OUTBOX_TEST_B:-}\"").empty());
    CHECK(text_of("${env:OUTBOX_TEST_EMPTY:-two}") == "two");
    CHECK(text_of("${env:OUTBOX_TEST_EMPTY}").empty());
    CHECK(text_of("\"$${env:OUTBOX_TEST_A} costs $5\"") == "${env:OUTBOX_TEST_A} costs $5");
    CHECK(substituted("${env:OUTBOX_TEST_B}").value.unresolved);
    CHECK(
        substituted("\"${env:no such}\"").said.find("no name of an environment variable") !=
        std::string::npos
    );
}

TEST_CASE("what came in is not looked at again, and is no template", "[config]") {
    const Variable nested("OUTBOX_TEST_A", "${env:HOME}");
    const Variable brace("OUTBOX_TEST_B", "{");
    const Variable both("OUTBOX_TEST_C", "x{{ arguments.y }}");
    CHECK(text_of("${env:OUTBOX_TEST_A}") == "${env:HOME}");
    CHECK(text_of("\"{ ${env:OUTBOX_TEST_B}\"") == "{ {");
    for (const auto* scalar :
         {"\"${env:OUTBOX_TEST_C}\"",
          "\"${env:OUTBOX_TEST_B}${env:OUTBOX_TEST_B} x }}\"",
          "\"{${env:OUTBOX_TEST_B} x }}\"",
          "\"${env:OUTBOX_TEST_B}{ x }}\"",
          "\"${env:OUTBOX_TEST_D:-{{x}\""}) {
        INFO(scalar);
        const auto result = substituted(scalar);
        CHECK(result.said.find("makes a {{ template }}") != std::string::npos);
        CHECK(result.value.unresolved);
        CHECK(result.value.text.empty());
    }
    CHECK(text_of("\"{{ x }} ${env:OUTBOX_TEST_B} {{ y }}\"") == "{{ x }} { {{ y }}");
    CHECK(
        substituted("\"{{ ${env:HOME} }}\"").said.find("inside a {{ template }}") !=
        std::string::npos
    );
}

TEST_CASE("files and credentials are secrets without their line end", "[config]") {
    const Folder folder;
    const auto path = folder.write("token", "s3cret\r\n");
    folder.write("nul", std::string("a\0b", 3));
    const Variable credentials("CREDENTIALS_DIRECTORY", folder.path().c_str());
    for (const auto& scalar :
         {"\"${file:" + path + "}\"",
          std::string("\"${file:token}\""),
          std::string("\"${cred:token}\"")}) {
        INFO(scalar);
        const auto result = substituted(scalar, folder.path());
        CHECK(result.said.empty());
        CHECK(result.value.text == "s3cret");
        CHECK(result.value.from_secret);
        CHECK(result.value.source == scalar.substr(1, scalar.size() - 2));
    }
    CHECK(
        substituted("\"${cred:missing}\"").said.find("LoadCredential=missing:") != std::string::npos
    );
    CHECK(substituted("\"${cred:nul}\"").said.find("NUL") != std::string::npos);
    CHECK(substituted("\"${cred:..}\"").said.find("no name of a credential") != std::string::npos);
    CHECK_FALSE(substituted("\"${env:PATH}\"").value.from_secret);
}

TEST_CASE("a lone plain substitution may be a number or a bool", "[config]") {
    const Variable number("OUTBOX_TEST_N", "12");
    const Variable yes("OUTBOX_TEST_T", "true");
    const auto config = must_load(
        "version: 1\n"
        "worker: { name: \"${env:OUTBOX_TEST_N}\" }\n"
        "testing:\n  allow_failpoints: ${env:OUTBOX_TEST_T}\n"
        "defaults:\n  retry:\n    max_attempts: ${env:OUTBOX_TEST_N}\n    jitter: "
        "${env:OUTBOX_TEST_Z:-0.25}\n"
    );
    CHECK(config.worker.name == "12");
    CHECK(config.allow_failpoints);
    CHECK(config.defaults.retry.max_attempts == 12);
    CHECK(config.defaults.retry.jitter == 0.25);
    const auto quoted =
        config_test::load_text("version: 1\nworker: { concurrency: \"${env:OUTBOX_TEST_N}\" }\n");
    CHECK(quoted.diagnostics.has_errors());
    const auto joined =
        config_test::load_text("version: 1\nworker:\n  concurrency: ${env:OUTBOX_TEST_N}0\n");
    CHECK(joined.diagnostics.has_errors());
}

TEST_CASE("a secret is never quoted in a diagnostic", "[config]") {
    const Folder folder;
    folder.write("token", "hunter2");
    folder.write("number", "31337");
    const Variable credentials("CREDENTIALS_DIRECTORY", folder.path().c_str());
    const auto loaded = config_test::load_text(
        "version: 1\nworker: { drain_timeout: \"${cred:token}\", concurrency: \"${cred:token}\" }\n"
        "log: { level: \"${cred:token}\" }\nadmin: { listen: \"${cred:token}\" }\n"
    );
    CHECK(loaded.diagnostics.all().size() == 4);
    const auto said = config_test::text_of(loaded.diagnostics);
    CHECK(said.find("hunter2") == std::string::npos);
    CHECK(said.find("${cred:token}") != std::string::npos);
    const auto number =
        config_test::load_text("version: 1\nworker: { lease_margin: \"${cred:number}\" }\n");
    CHECK(number.diagnostics.has_errors());
    CHECK(config_test::text_of(number.diagnostics).find("31337") == std::string::npos);
}
