#include "daemon/cli.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <vector>

#include "tests/support/catch.hpp"

using outboxd::run_cli;

namespace {

struct Run {
    int code = 0;
    std::string out;
    std::string err;
};

Run outboxd_cli(std::vector<std::string> arguments) {
    unsetenv("OUTBOXD_DATABASE");
    std::ostringstream out;
    std::ostringstream err;
    const int code = run_cli(arguments, {.out = out, .err = err});
    return {code, out.str(), err.str()};
}

class ConfigFile {
 public:
    explicit ConfigFile(const std::string& text)
        : path_(
              std::filesystem::temp_directory_path() /
              ("outboxd-cli-" + std::to_string(getpid()) + ".yaml")
          ) {
        std::ofstream(path_) << text;
    }
    ~ConfigFile() { std::filesystem::remove(path_); }
    ConfigFile(const ConfigFile&) = delete;
    ConfigFile& operator=(const ConfigFile&) = delete;
    [[nodiscard]] std::string path() const { return path_; }

 private:
    std::filesystem::path path_;
};

const char* const kLogTool = R"(version: 1
database: { dsn: "host=/nonexistent password=hunter2" }
tools:
  note: { effect: read, execute: { type: log } }
)";

const char* const kUnsafeTool = R"(version: 1
database: { dsn: "host=/nonexistent" }
tools:
  refund: { effect: write, execute: { type: http, method: POST, url: "https://pay.example.com/r" } }
)";

const char* const kManualTool = R"(version: 1
database: { dsn: "${env:OUTBOXD_DATABASE:-host=/nonexistent}" }
tools:
  fax:
    effect: write
    execute: { type: command, argv: [/bin/true] }
    reconcile: { type: manual, reason: "nobody can ask a fax machine" }
)";

}  // namespace

TEST_CASE("help and version are answers, not errors") {
    const Run help = outboxd_cli({"--help"});
    CHECK(help.code == 0);
    for (const char* command :
         {"run",
          "dev",
          "demo",
          "migrate",
          "check-config",
          "print-config",
          "render",
          "key",
          "enqueue",
          "get",
          "events",
          "list",
          "cancel",
          "resolve",
          "prune",
          "forget-keys",
          "doctor"}) {
        CAPTURE(command);
        CHECK_THAT(help.out, ContainsSubstring(command));
        const Run of_command = outboxd_cli({command, "--help"});
        CHECK(of_command.code == 0);
        CHECK(std::regex_search(of_command.out, std::regex("Examples?:\n  ")));
    }
    CHECK(outboxd_cli({"--version"}).out.starts_with("outboxd 0."));
}

TEST_CASE("every mistake of usage exits 2 and says something on stderr") {
    const std::vector<std::vector<std::string>> mistakes = {
        {},
        {"frobnicate"},
        {"get"},
        {"get", "a", "b"},
        {"run"},
        {"key", "--tool", "t"},
        {"key", "--tool", "t", "--run-id", "r", "--arguments", "{", "--occurrence", "1"},
        {"key", "--tool", "t", "--run-id", "r", "--arguments", "[1]"},
        {"key", "--tool", "t", "--run-id", "r", "--arguments", "{}", "--occurrence", "0"},
        {"key", "--tool", "t", "--run-id", "r", "--arguments", "@/nonexistent"},
        {"enqueue", "t", "--arguments", "{}"},
        {"enqueue", "t", "--arguments", "{}", "--run-id", "r", "--operation-id", "x"},
        {"enqueue", "t", "--arguments", "{}", "--run-id", "r", "--wait", "30"},
        {"enqueue", "t", "--arguments", "{}", "--run-id", "r", "--label", "novalue"},
        {"enqueue", "t", "--arguments", "{}", "--run-id", "r"},  // which database?
        {"list", "--status", "sleeping"},
        {"list", "--older-than", "5"},
        {"cancel"},
        {"cancel", "op-1", "--tool", "t"},
        {"cancel", "--status", "failed"},
        {"retry", "--tool", "t"},
        {"resolve", "op-1", "--verdict", "applied", "--reason", "r", "--actor", "a"},
        {"resolve",
         "op-1",
         "--verdict",
         "perhaps",
         "--reason",
         "r",
         "--actor",
         "a",
         "--expect-epoch",
         "1"},
        {"resolve",
         "op-1",
         "--verdict",
         "not-applied",
         "--reason",
         "r",
         "--actor",
         "a",
         "--expect-epoch",
         "1",
         "--result",
         "{}"},
        {"acknowledge", "op-1", "--reason", "r"},
        {"acknowledge", "op-1", "--reason", " ", "--actor", "a"},
        {"probe"},
        {"prune"},
        {"prune", "--payloads-older-than", "30"},
        {"forget-keys", "--yes"},
        {"doctor", "now"},
        {"get", "id"},  // which database?
        {"check-config"},
        {"check-config", "a.yaml", "-c", "b.yaml"},
    };
    for (const auto& arguments : mistakes) {
        CAPTURE(arguments);
        const Run run = outboxd_cli(arguments);
        CHECK(run.code == 2);
        CHECK(run.err.starts_with("outboxd: "));
        CHECK(run.out.empty());
    }
    CHECK_THAT(outboxd_cli({"frobnicate"}).err, ContainsSubstring("no such command: frobnicate"));
    for (const auto* help : {"--help", "-h"}) {
        const Run asked = outboxd_cli({"frobnicate", help});
        CHECK(asked.code == 2);
        CHECK(asked.out.empty());
        CHECK_THAT(asked.err, ContainsSubstring("no such command: frobnicate"));
    }
}

TEST_CASE("an unreachable database exits 4") {
    const std::string dsn = "host=/nonexistent connect_timeout=1";
    CHECK(outboxd_cli({"--database", dsn, "get", "id"}).code == 4);
    CHECK(outboxd_cli({"get", "id", "--database", dsn}).code == 4);
    CHECK(outboxd_cli({"migrate", "--dry-run", "--database", dsn}).code == 4);
}

TEST_CASE("key prints the pure operation key without any database") {
    const std::vector<std::string> arguments = {
        "key",
        "--tool",
        "draft_quote",
        "--run-id",
        "r1",
        "--arguments",
        R"({ "quantity" : 200.0, "sku":"  SKU-4411\n", "accountName":"Henderson Industrial" })"
    };
    Run run = outboxd_cli(arguments);
    CHECK(run.code == 0);
    CHECK(run.out == "71c60a96638b2aca6990eaae7b2417501460a449fd2d2ee5e201101d5f4c0541\n");
    // The environment variable alone does not count.
    setenv("OUTBOXD_DATABASE", "host=/nonexistent", 1);
    std::ostringstream out;
    std::ostringstream err;
    CHECK(run_cli(arguments, {.out = out, .err = err}) == 0);
    unsetenv("OUTBOXD_DATABASE");
}

TEST_CASE("arguments that look like options or lists are taken as they are") {
    CHECK(outboxd_cli({"key", "--tool", "-t", "--run-id", "[a,b]", "--arguments", "{}"}).code == 0);
    CHECK(outboxd_cli({"key", "--tool", "t", "--run-id", "", "--arguments", "{}"}).code == 0);
}

TEST_CASE("check-config tells the mistakes of every layer at once, and each once") {
    const ConfigFile file(R"(version: 1
worker: { concurency: 8 }
tools:
  refund:
    execute: { type: http, method: POST, url: "https://a.example/", json: { a: "{{ nowhere.x }}" } }
    timeout: 20
  note:
    effect: read
    execute: { type: command }
  twice:
    execute: { type: command, argv: [echo], exit_codes: { 300: retry } }
    reconcile: { type: manual, reason: "nobody can tell" }
)");
    const Run run = outboxd_cli({"check-config", file.path()});
    CHECK(run.code == 3);
    std::vector<std::string> places;
    static const std::string kError = ": error: ";
    std::istringstream lines(run.err);
    for (std::string line; std::getline(lines, line);) {
        const auto at = line.find(kError);
        if (at == std::string::npos) continue;
        places.push_back(line.substr(file.path().size() + 1, at - file.path().size() - 1));
    }
    INFO(run.err);
    // The unknown key; refund without reconcile; its template; its time-out; note without argv (at
    // its parent); the code.
    CHECK(places == std::vector<std::string>{"2:11", "4:3", "5:80", "6:14", "9:5", "11:59"});
}

TEST_CASE("every mistake of every bad file has a place, whichever layer found it") {
    namespace fs = std::filesystem;
    const auto before = fs::current_path();
    fs::current_path(BAD_FILES);
    unsetenv("OUTBOX_TEST_NOT_SET");
    unsetenv("CREDENTIALS_DIRECTORY");
    static const std::regex kPlaced("[^:]+:[1-9][0-9]*:[1-9][0-9]*: (error|warning): .+");
    int files = 0;
    for (const auto& entry : fs::directory_iterator(".")) {
        if (entry.path().extension() != ".yaml") continue;
        ++files;
        const Run run = outboxd_cli({"check-config", entry.path().filename().string()});
        std::istringstream lines(run.err);
        for (std::string line; std::getline(lines, line);) {
            if (line.starts_with("  hint: ")) continue;
            CAPTURE(line);
            CHECK(std::regex_match(line, kPlaced));
        }
    }
    CHECK(files >= 90);
    fs::current_path(before);
}

TEST_CASE("what cannot be is refused once, and nothing else is said about it") {
    const ConfigFile file(R"(version: 1
tools:
  grant:
    effect: write
    execute: { type: log }
    reconcile: { type: resend }
  key:
    execute: { type: http, method: POST, url: "https://h.example/x", headers: { K: "{{ operation.key }}" } }
    key: { encoding: uuid, max_length: 20 }
    reconcile: { type: manual, reason: "nobody can tell" }
)");
    const Run run = outboxd_cli({"check-config", file.path()});
    CHECK(run.code == 3);
    INFO(run.err);
    std::vector<std::string> said;
    std::istringstream lines(run.err);
    for (std::string line; std::getline(lines, line);) {
        const auto at = line.find(": error: ");
        if (at != std::string::npos) said.push_back(line.substr(at + 9));
    }
    CHECK(
        said ==
        std::vector<std::string>{
            "tools.grant.reconcile: resend has nothing to send: execute only writes to the log",
            "tools.key.key.max_length: a uuid needs 36 characters and cannot be cut, 20 are left"
        }
    );
}

TEST_CASE("check-config says ok, or everything that is wrong, to the right stream") {
    SECTION("a good file") {
        const ConfigFile file(kLogTool);
        const Run run = outboxd_cli({"check-config", file.path()});
        CAPTURE(run.err);
        CHECK(run.code == 0);
        CHECK(run.out == "ok\n");
        CHECK(outboxd_cli({"check-config", "-c", file.path()}).code == 0);
    }
    SECTION("a write tool that nothing can reconcile") {
        const ConfigFile file(kUnsafeTool);
        const Run text = outboxd_cli({"check-config", file.path()});
        CHECK(text.code == 3);
        CHECK(text.out.empty());
        CHECK_THAT(text.err, ContainsSubstring(file.path() + ":4:3: error: "));
        const Run json = outboxd_cli({"check-config", file.path(), "--json"});
        CHECK(json.code == 3);
        CHECK_THAT(json.out, ContainsSubstring("\"line\":4"));
        CHECK(json.err.empty());
    }
    SECTION("a warning is an error only with --strict") {
        const ConfigFile file(kManualTool);
        const Run run = outboxd_cli({"check-config", file.path()});
        CHECK(run.code == 0);
        CHECK_THAT(run.err, ContainsSubstring("warning"));
        CHECK(outboxd_cli({"check-config", file.path(), "--strict"}).code == 3);
    }
    SECTION("a file that is not there") {
        CHECK(outboxd_cli({"check-config", "/nonexistent.yaml"}).code == 3);
        CHECK(outboxd_cli({"run", "-c", "/nonexistent.yaml"}).code == 3);
    }
}

TEST_CASE("print-config masks secrets") {
    const ConfigFile file(kLogTool);
    const Run run = outboxd_cli({"print-config", file.path()});
    CHECK(run.code == 0);
    CHECK_THAT(run.out, ContainsSubstring("drain_timeout: 30s"));
    CHECK_THAT(run.out, !ContainsSubstring("hunter2"));
}
