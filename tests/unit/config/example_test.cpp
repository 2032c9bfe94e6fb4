#include <sstream>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/unit/config/files.hpp"

using config_test::Folder;
using config_test::Variable;

namespace {

// The example with its commented tools and credentials switched on.
std::string everything(const std::string& legacy_password_file) {
    std::istringstream in(config_test::read(EXAMPLE_FILE));
    std::string out;
    bool tools = false;
    for (std::string line; std::getline(in, line);) {
        if (line == "credentials: {}") {
            line = "credentials:";
            tools = true;
        } else if (tools && line.rfind("#  ", 0) == 0) {
            line = line.substr(1);
        }
        out += line + '\n';
    }
    const auto point = [&](const std::string& path, const std::string& file) {
        const auto at = out.find(path);
        if (at != std::string::npos) out.replace(at, path.size(), file);
    };
    point("/run/secrets/legacy", legacy_password_file);
    point("/etc/outboxd/client.pem", legacy_password_file);
    point("/etc/outboxd/client.key", legacy_password_file);
    return out;
}

}  // namespace

TEST_CASE("the example loads without an environment and without a word", "[config]") {
    const auto loaded = config::load(EXAMPLE_FILE);
    CHECK(config_test::text_of(loaded.diagnostics).empty());
    REQUIRE(loaded.config);
    CHECK(loaded.config->database.embedded);
    CHECK(loaded.config->tools.size() == 1);
}

TEST_CASE("what the example shows are the defaults", "[config]") {
    const auto example = config::load(EXAMPLE_FILE);
    REQUIRE(example.config);
    // Everything but the tools, printed, is what an empty configuration prints.
    auto shown = *example.config;
    shown.tools.clear();
    auto bare = config_test::must_load("version: 1\ndatabase: { embedded: {} }\n");
    CHECK(print(shown) == print(bare));
}

TEST_CASE("what is commented out in the example loads too", "[config]") {
    const Folder folder;
    folder.write("helpdesk_token", "t0ken\n");
    folder.write("pager", "p4ger\n");
    folder.write("graph_secret", "gr4ph\n");
    folder.write("whsec", "whsec_w3bhook\n");
    folder.write("billing_dsn", "dbname=billing password=b1lling\n");
    const Variable credentials("CREDENTIALS_DIRECTORY", folder.path().c_str());
    const Variable key("MAPS_KEY", "m4ps");
    const auto file =
        folder.write("outboxd.yaml", everything(folder.write("legacy", "pa55word\n")));

    const auto loaded = config::load(file);
    CHECK(config_test::text_of(loaded.diagnostics).empty());
    REQUIRE(loaded.config);
    std::string names;
    for (const auto& tool : loaded.config->tools) names += tool.name + ' ';
    CHECK(
        names ==
        "note create_ticket create_ticket:close attach_report print_label grant_credit "
        "book_payment "
    );
    CHECK(loaded.config->credentials.at("helpdesk").secret.value == "t0ken");
    CHECK(loaded.config->credentials.at("pager").secret.value == "Token token=p4ger");
    CHECK(loaded.config->credentials.at("legacy").secret.value == "pa55word");

    const auto printed = print(*loaded.config);
    for (const auto* secret :
         {"t0ken", "p4ger", "m4ps", "gr4ph", "w3bhook", "pa55word", "b1lling"}) {
        CHECK(printed.find(secret) == std::string::npos);
    }
    const auto again = config::load(folder.write("printed.yaml", printed));
    CHECK(again.diagnostics.all().empty());
    REQUIRE(again.config);
    CHECK(print(*again.config) == printed);
}
