// check-config --tests and render, as a person or a script sees them.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "daemon/cli.hpp"
#include "outbox/json.hpp"
#include "tests/support/catch.hpp"

namespace {

struct Run {
    int code = 0;
    std::string out;
    std::string err;
};

Run cli(const std::vector<std::string>& arguments) {
    unsetenv("OUTBOXD_DATABASE");
    std::ostringstream out;
    std::ostringstream err;
    const int code = outboxd::run_cli(arguments, {.out = out, .err = err});
    return {code, out.str(), err.str()};
}

class ConfigFile {
 public:
    explicit ConfigFile(const std::string& text)
        : path_((std::filesystem::temp_directory_path() /
                 ("outboxd-cli-config-" + std::to_string(getpid()) + ".yaml"))
                    .string()) {
        std::ofstream(path_) << text;
    }
    ~ConfigFile() { std::filesystem::remove(path_); }
    ConfigFile(const ConfigFile&) = delete;
    ConfigFile& operator=(const ConfigFile&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

 private:
    std::string path_;
};

const std::string kTools = R"(version: 1
credentials: { desk: { kind: bearer, token: "${env:OUTBOX_TEST_TOKEN:-hunter2hunter2}" } }
tools:
  ticket:
    arguments: { type: object, required: [title], properties: { title: { type: string } } }
    execute: { type: http, method: POST, url: https://desk.example.com/t, credential: desk, headers: { K: "{{ operation.key }}" }, json: { title: "{{ arguments.title }}" } }
    reconcile: { type: http, url: "https://desk.example.com/t/{{ operation.key }}", credential: desk, verdicts: [{ when: { status: 200 }, then: found }, { when: { status: 404 }, then: absent }] }
    compensate:
      close: { type: http, method: DELETE, url: "https://desk.example.com/t/{{ original.result.id }}", headers: { K: "{{ operation.key }}" }, reconcile: { type: http, url: "https://desk.example.com/t/{{ original.result.id }}", verdicts: [{ when: { status: 404 }, then: found }] } }
  label:
    execute: { type: command, argv: [/bin/label, "{{ arguments.to }}"], stdin: "{{ arguments.to | raw }}" }
    reconcile: { type: manual, reason: no list }
  note: { effect: read, execute: { type: log } }
)";

// The documents of --json, one a line.
std::vector<outbox::Json> documents(const std::string& text) {
    std::vector<outbox::Json> out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        auto parsed = outbox::parse_json(line);
        INFO(line);
        REQUIRE(parsed.value);
        out.push_back(std::move(*parsed.value));
    }
    return out;
}

}  // namespace

TEST_CASE("check-config --tests: what holds exits 0, what does not exits 1 and names the place") {
    const std::string good =
        "tests:\n"
        "  a ticket: { tool: ticket, arguments: { title: a }, request: { method: POST }, answers: "
        "[{ status: 500, then: unknown }] }\n";
    const ConfigFile passing(kTools + good);
    const Run ok = cli({"check-config", passing.path(), "--tests"});
    CHECK(ok.code == 0);
    CHECK(ok.out == "ok     a ticket (ticket, 2 checks)\n1 tests, 0 failed\n");

    const ConfigFile failing(
        kTools + good +
        "  a wrong one: { tool: ticket, arguments: { title: a }, request: { method: PUT } }\n"
    );
    const Run wrong = cli({"check-config", failing.path(), "--tests"});
    CHECK(wrong.code == 1);
    CHECK_THAT(wrong.out, ContainsSubstring("FAILED a wrong one (ticket, 1 check)\n"));
    CHECK_THAT(wrong.out, ContainsSubstring("2 tests, 1 failed\n"));
    CHECK_THAT(wrong.err, ContainsSubstring("yaml:16:"));
    CHECK_THAT(wrong.err, ContainsSubstring("a wrong one: request.method is not as expected"));
    CHECK_THAT(wrong.err, ContainsSubstring("  expected: PUT\n  got:      POST\n"));

    const Run json = cli({"check-config", failing.path(), "--tests", "--json"});
    CHECK(json.code == 1);
    const auto all = documents(json.out);
    const auto& last = all.back();
    CHECK(last.find("test")->as_string()[0] == "a wrong one");
    CHECK_FALSE(*last.find("ok")->as_bool());
    const auto* failure = last.at_pointer("/failures/0");
    REQUIRE(failure != nullptr);
    CHECK(*failure->find("got")->as_string() == "POST");
    CHECK(failure->find("line")->as_number()->text == "16");
}

TEST_CASE("check-config --tests: without tests it is no success, with mistakes none is run") {
    const ConfigFile none(kTools);
    const Run empty = cli({"check-config", none.path(), "--tests"});
    CHECK(empty.code == 1);
    CHECK_THAT(empty.err, ContainsSubstring("the file has no tests:"));
    CHECK(cli({"check-config", none.path()}).code == 0);

    const ConfigFile broken(kTools + "tests: { a: { tool: nobody, request: { method: GET } } }\n");
    const Run wrong = cli({"check-config", broken.path(), "--tests"});
    CHECK(wrong.code == 3);
    CHECK_THAT(wrong.err, ContainsSubstring("there is no tool \"nobody\""));
    CHECK(wrong.out.empty());
}

TEST_CASE("render shows the exact request and no secret") {
    const ConfigFile file(kTools);
    const Run http = cli(
        {"render",
         "ticket",
         "--arguments",
         R"({"title": "a\nb"})",
         "-c",
         file.path(),
         "--operation-id",
         "op-1"}
    );
    INFO(http.err);
    CHECK(http.code == 0);
    CHECK_THAT(
        http.out,
        ContainsSubstring(
            "# to https://desk.example.com:443\nPOST /t HTTP/1.1\nHost: desk.example.com\n"
        )
    );
    CHECK_THAT(http.out, ContainsSubstring("Authorization: Bearer ***\n"));
    CHECK_THAT(http.out, ContainsSubstring("\n\n{\"title\":\"a\\nb\"}\n"));
    CHECK(http.out.find("hunter2") == std::string::npos);

    const Run json = cli(
        {"render",
         "ticket",
         "--arguments",
         R"({"title": "a"})",
         "-c",
         file.path(),
         "--json",
         "--phase",
         "reconcile"}
    );
    CHECK(json.code == 0);
    const auto document = documents(json.out).front();
    CHECK(*document.find("method")->as_string() == "GET");
    CHECK_THAT(
        *document.find("url")->as_string(), ContainsSubstring("https://desk.example.com/t/")
    );

    const Run close = cli(
        {"render",
         "ticket",
         "--phase",
         "close",
         "--original-result",
         R"({"id": 7})",
         "-c",
         file.path()}
    );
    INFO(close.err);
    CHECK(close.code == 0);
    CHECK_THAT(close.out, ContainsSubstring("DELETE /t/7 HTTP/1.1\n"));
    CHECK(
        cli({"render",
             "ticket:close",
             "--original-result",
             R"({"id": 7})",
             "-c",
             file.path(),
             "--operation-id",
             "example"})
            .out == close.out
    );

    const Run command =
        cli({"render", "label", "--arguments", R"({"to": "it's"})", "-c", file.path()});
    CHECK(command.code == 0);
    CHECK_THAT(command.out, ContainsSubstring("OUTBOX_OPERATION_ID=example\n"));
    CHECK_THAT(command.out, ContainsSubstring("/bin/label 'it'\\''s'\n# standard input:\nit's\n"));
}

TEST_CASE("render: what would not be sent, and who is not there") {
    const ConfigFile file(kTools);
    const auto said = [&](std::vector<std::string> arguments, int code, const std::string& text) {
        arguments.insert(arguments.end(), {"-c", file.path()});
        arguments.insert(arguments.begin(), "render");
        const Run run = cli(arguments);
        INFO(run.err);
        CHECK(run.code == code);
        CHECK(run.out.empty());
        CHECK_THAT(run.err, ContainsSubstring(text));
    };
    said({"ticket"}, 1, "nothing is sent, invalid_arguments: ");
    said({"label", "--arguments", R"({"to": "-x"})"}, 1, "nothing is sent, invalid_argument: ");
    said(
        {"label", "--arguments", R"({"to": "x"})", "--phase", "reconcile"},
        1,
        "only a person can tell"
    );
    said({"note"}, 1, "nothing leaves the process");
    said({"tickets"}, 1, "no tool tickets in ");
    said({"ticket", "--phase", "clse"}, 1, "no tool ticket:clse in ");
    said({"ticket", "--arguments", "{"}, 2, "--arguments: ");
    said({"ticket", "--phase", "close", "--original-result", "{"}, 2, "--original-result: ");
    CHECK(cli({"render", "ticket"}).code == 2);
    const ConfigFile broken("version: 2\n");
    CHECK(cli({"render", "ticket", "-c", broken.path()}).code == 3);
}
