// One small file per mistake under bad/, what is said about it beside it: bad/x.yaml, bad/x.expect.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/config/files.hpp"

namespace {

namespace fs = std::filesystem;
using config_test::Variable;

std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(TEST_FILES "/bad")) {
        if (entry.path().extension() == ".yaml") out.push_back(entry.path().stem().string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace

TEST_CASE("every mistake is reported at its place with a way out", "[config]") {
    const auto before = fs::current_path();
    fs::current_path(TEST_FILES "/bad");  // so that diagnostics name the file as it is
    const Variable unset("OUTBOX_TEST_NOT_SET", nullptr);
    const Variable no_credentials("CREDENTIALS_DIRECTORY", nullptr);
    const Variable brace("OUTBOX_TEST_BRACE", "{");
    const Variable home("HOME", "/");

    const auto all = names();
    CHECK(all.size() >= 90);
    for (const auto& name : all) {
        INFO(name);
        const auto loaded = config::load(name + ".yaml");
        CHECK(config_test::text_of(loaded.diagnostics) == config_test::read(name + ".expect"));
        CHECK(loaded.config.has_value() != loaded.diagnostics.has_errors());
        CHECK_FALSE(loaded.diagnostics.all().empty());
    }
    fs::current_path(before);
}

TEST_CASE("an unreadable file is a diagnostic", "[config]") {
    const auto missing = config::load("no/such/file.yaml");
    CHECK_FALSE(missing.config);
    CHECK(
        config_test::text_of(missing.diagnostics) ==
        "no/such/file.yaml: error: cannot read no/such/file.yaml: No such file or directory\n"
        "  hint: does it exist, and may this user read it?\n"
    );
    const auto folder = config::load("/");
    CHECK_FALSE(folder.config);
    CHECK(folder.diagnostics.all().size() == 1);
}

TEST_CASE("diagnostics as JSON", "[config]") {
    const auto file = std::make_shared<const std::string>("a\"b.yaml");
    const config::Diagnostic diagnostic{
        config::Severity::warning, {file, 3, 7}, "a \\ and\na line", ""
    };
    CHECK(
        to_json(diagnostic) ==
        R"({"file":"a\"b.yaml","line":3,"column":7,"level":"warning","message":"a \\ and\na line","hint":""})"
    );
}

TEST_CASE("diagnostics are sorted by place, and each is said once", "[config]") {
    const auto file = std::make_shared<const std::string>("f");
    config::Diagnostics list;
    list.error({file, 9, 1}, "last");
    list.error({file, 2, 5}, "second");
    list.warning({file, 2, 5}, "third");
    list.error({file, 1, 1}, "first");
    list.error({file, 9, 1}, "last");
    list.sort();
    CHECK(
        config_test::text_of(list) ==
        "f:1:1: error: first\nf:2:5: error: second\nf:2:5: warning: third\nf:9:1: error: last\n"
    );
}
