#include "config/mask.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/config/files.hpp"

using config_test::Folder;
using config_test::Variable;

TEST_CASE("secrets are printed as their source or not at all", "[config]") {
    using config::shown_secret;
    CHECK(shown_secret("").empty());
    CHECK(shown_secret("${cred:db_password}") == "${cred:db_password}");
    CHECK(shown_secret("Token token=${cred:pager}") == "Token token=${cred:pager}");
    CHECK(shown_secret("${env:T:-hunter2}") == "${env:T:-***}");
    CHECK(shown_secret("a${env:T:-hunter2}b${env:U}c") == "a${env:T:-***}b${env:U}c");
    CHECK(shown_secret("postgresql://u:${cred:pw}@h/d") == "postgresql://u:${cred:pw}@h/d");
    CHECK(shown_secret("postgresql://u:hunter2@${env:H}/d").empty());
    CHECK(shown_secret("host=${env:H} password=hunter2").empty());
    CHECK(shown_secret("host=${env:H} password = hunter2").empty());
    CHECK(shown_secret("password=${cred:pw} host=h") == "password=${cred:pw} host=h");
    CHECK(shown_secret("abc$${x}").empty());
}

TEST_CASE("names of secrets", "[config]") {
    for (const auto* name :
         {"Authorization", "X-Api-Key", "Cookie", "access_token", "PGPASSWORD", "client-secret"}) {
        CHECK(config::is_sensitive_name(name));
    }
    for (const auto* name : {"Idempotency-Key", "title", "Content-Type", "token_count", ""}) {
        CHECK_FALSE(config::is_sensitive_name(name));
    }
}

TEST_CASE("the printed configuration is complete, masked, and loads again", "[config]") {
    const Folder folder;
    folder.write("token", "hunter2");
    const Variable credentials("CREDENTIALS_DIRECTORY", folder.path().c_str());
    const Variable host("OUTBOX_TEST_HOST", "desk.example.com");
    std::string text = R"(version: 1
database: { dsn: "postgresql://app:inline1@db/x" }
admin: { listen: "[::1]:80", hosts: [a.example] }
worker: { wakeup: off, poll: { busy: 7ms } }
retention: { keys: 400d, events: 36h }
limits: { result: 100KiB }
credentials:
  desk: { kind: bearer, token: "${cred:token}" }
  old: { kind: basic, username: bot, password: inline2 }
  graph: { kind: oauth2_client_credentials, token_url: "https://${env:OUTBOX_TEST_HOST}/t", client_id: me, client_secret: inline6, scope: "a b", client_auth: post }
  svix: { kind: standard_webhooks, secret: "${cred:token}" }
  cert: { kind: mtls, cert_file: "FOLDER/token", key_file: "FOLDER/token" }
defaults: { http: { proxy: "http://user:${cred:token}@[::1]:3128" } }
tools:
  look:
    effect: read
    execute:
      type: http
      method: GET
      url: https://${env:OUTBOX_TEST_HOST}/x
      credential: desk
      headers: { Authorization: inline3, X-Cost: "$${5}", Accept: "{{ arguments.accept }}" }
      query: { api_key: "${env:OUTBOX_TEST_KEY:-inline4}", q: "a: #b" }
  run:
    effect: write
    rate: 5/h
    http: { proxy: "http://user:inline7@proxy:3128" }
    execute: { type: command, argv: ["-x", "1", 1], env: { MY_TOKEN: inline5 }, exit_codes: { 0: succeeded } }
    reconcile: { type: manual, reason: "no: list" }
    compensate:
      undo: { type: command, argv: [undo], reconcile: { type: command, argv: [look], exit_codes: { 0: found } } }
testing: { allow_failpoints: true }
)";
    for (auto at = text.find("FOLDER"); at != std::string::npos; at = text.find("FOLDER")) {
        text.replace(at, 6, folder.path());
    }
    const auto file = folder.write("outboxd.yaml", text);
    const auto loaded = config::load(file);
    INFO(config_test::text_of(loaded.diagnostics));
    REQUIRE(loaded.config);
    const auto printed = print(*loaded.config);
    INFO(printed);
    for (const auto* secret :
         {"hunter2", "inline1", "inline2", "inline3", "inline4", "inline5", "inline6", "inline7"}) {
        CHECK(printed.find(secret) == std::string::npos);
    }
    for (const auto* line :
         {"  dsn: \"***\"\n",
          "    token: \"${cred:token}\"\n",
          "    password: \"***\"\n",
          "    token_url: \"https://${env:OUTBOX_TEST_HOST}/t\"\n",
          "    client_secret: \"***\"\n",
          "    client_auth: post\n",
          "    scope: \"a b\"\n",
          "    secret: \"${cred:token}\"\n",
          "    proxy: \"http://user:${cred:token}@[::1]:3128\"\n",
          "      proxy: \"http://***@proxy:3128\"\n",
          "      url: \"https://${env:OUTBOX_TEST_HOST}/x\"\n",
          "        Authorization: \"***\"\n",
          "        X-Cost: \"$${5}\"\n",
          "        Accept: \"{{ arguments.accept }}\"\n",
          "        api_key: \"${env:OUTBOX_TEST_KEY:-***}\"\n",
          "        MY_TOKEN: \"***\"\n",
          "  wakeup: off\n",
          "    idle: 1s\n",
          "  keys: 400d\n",
          "  events: 36h\n",
          "  result: 100KiB\n",
          "  listen: \"[::1]:80\"\n",
          "    rate: 5/h\n",
          "      max_attempts: 8\n",
          "      stdout: json\n"}) {
        INFO(line);
        CHECK(printed.find(line) != std::string::npos);
    }

    const auto again = config::load(folder.write("printed.yaml", printed));
    INFO(config_test::text_of(again.diagnostics));
    REQUIRE(again.config);
    CHECK(print(*again.config) == printed);
    REQUIRE(again.config->tools.size() == 3);
    CHECK(again.config->tools[2].name == "run:undo");
    const auto& argv = std::get<config::Command>(again.config->tools[1].execute).argv;
    CHECK(argv.at(0).value == "-x");
    CHECK(again.config->worker.wakeup == false);
}
