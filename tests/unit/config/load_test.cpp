#include "config/load.hpp"

#include <stdexcept>
#include <string_view>
#include <variant>

#include "tests/support/catch.hpp"
#include "tests/unit/config/files.hpp"

using namespace std::chrono_literals;
using config_test::Folder;
using config_test::load_text;
using config_test::must_load;
using config_test::Variable;

namespace {

const config::Tool& tool(const config::Config& config, std::string_view name) {
    for (const auto& t : config.tools) {
        if (t.name == name) return t;
    }
    throw std::runtime_error("no tool " + std::string(name));
}

constexpr auto kTicket = R"(version: 1
database: { dsn: "postgresql://localhost/x", namespace: desk }
defaults:
  timeout: 8s
  retry: { max_attempts: 3, jitter: 0 }
  reconcile: { settle: 1s, confirmations: 2 }
  http: { tls_verify: false }
credentials:
  desk: { kind: bearer, token: "${env:OUTBOX_TEST_TOKEN}" }
tools:
  create_ticket:
    description: Open a ticket.
    effect: write
    arguments: { type: object, properties: { title: { type: string, maxLength: 200 } } }
    dedup: { fields: [title] }
    concurrency: 16
    rate: 120/m
    timeout: 4s
    retry: { initial: 100ms }
    key: { encoding: short, prefix: t-, window: forever }
    execute:
      type: http
      method: POST
      url: https://desk.example.com/tickets
      credential: desk
      headers: { Idempotency-Key: "{{ operation.key }}", X-Version: 2 }
      json: { title: "{{ arguments.title }}", count: 9007199254740993, flag: true }
      outcomes:
        - { when: { status: 201 }, then: succeeded, result: { id: /id } }
        - { when: { status: 422 }, then: rejected, code: /code, message: /message, proves_absence: true }
    reconcile:
      type: http
      url: https://desk.example.com/tickets
      query: { ref: "{{ operation.key }}", limit: 2 }
      items: /tickets
      match: { /ref: "{{ operation.key }}" }
      consistency: eventual
      settle: 7s
      interval: 50ms
    compensate:
      close:
        type: http
        method: POST
        url: "https://desk.example.com/tickets/{{ original.result.id }}/close"
        timeout: 3s
        reconcile:
          type: http
          url: "https://desk.example.com/tickets/{{ original.result.id }}"
          verdicts: [ { when: { status: 200 }, then: found } ]
)";

}  // namespace

TEST_CASE("a tool has the defaults merged in, member by member", "[config]") {
    const Variable token("OUTBOX_TEST_TOKEN", "t");
    const auto config = must_load(kTicket);
    REQUIRE(config.tools.size() == 2);
    const auto& t = tool(config, "create_ticket");
    CHECK(t.write);
    CHECK(t.timeout == 4s);
    CHECK(t.connect_timeout == 4s);  // never longer than the time-out
    CHECK(t.retry.max_attempts == 3);
    CHECK(t.retry.initial == 100ms);
    CHECK(t.retry.jitter == 0);
    CHECK(t.retry.max == 5min);
    CHECK(t.reconcile.settle == 7s);
    CHECK(t.reconcile.confirmations == 2);
    CHECK(t.reconcile.interval == 50ms);
    CHECK(t.reconcile.max_interval == 10min);
    CHECK(t.consistency == "eventual");
    CHECK_FALSE(t.http.tls_verify);
    CHECK(t.concurrency == 16);
    CHECK(t.rate_per_second == 2.0);
    CHECK(t.key.encoding == "short");
    CHECK(t.key.prefix == "t-");
    CHECK_FALSE(t.key.window);
    CHECK(t.dedup_fields.at(0).value == "title");
    CHECK(t.compensations == std::vector<std::string>{"close"});
    CHECK(t.mark.line == 11);
    CHECK(t.mark.column == 3);
    REQUIRE(t.arguments);
    CHECK(t.arguments->find("properties")->find("title")->find("maxLength")->text == "200");
}

TEST_CASE("requests are kept as texts and values with their places", "[config]") {
    const Variable token("OUTBOX_TEST_TOKEN", "t");
    const auto config = must_load(kTicket);
    const auto& t = tool(config, "create_ticket");
    const auto* http = std::get_if<config::HttpRequest>(&t.execute);
    REQUIRE(http);
    CHECK(http->method.value == "POST");
    CHECK(http->url.value == "https://desk.example.com/tickets");
    CHECK(http->url.mark.line == 24);
    CHECK(http->credential->value == "desk");
    CHECK(http->headers.at(0).first.value == "Idempotency-Key");
    CHECK(http->headers.at(1).second.value == "2");
    CHECK(http->body == config::HttpRequest::Body::json);
    CHECK(http->body_value.find("count")->text == "9007199254740993");
    CHECK(http->body_value.find("flag")->is(config::Value::Kind::boolean));
    REQUIRE(http->rules.size() == 2);
    CHECK(http->has_rules);
    CHECK(http->rules[0].when.find("status")->text == "201");
    CHECK(http->rules[0].then.value == "succeeded");
    CHECK(http->rules[1].proves_absence);
    CHECK(http->rules[1].code->value == "/code");

    REQUIRE(t.reconcile_by);
    const auto* look = std::get_if<config::HttpRequest>(&*t.reconcile_by);
    REQUIRE(look);
    CHECK(look->method.value == "GET");
    CHECK(look->items->value == "/tickets");
    CHECK(look->query.at(1).second.text == "2");
    CHECK_FALSE(look->has_rules);
}

TEST_CASE("a compensation is a tool of its own and inherits", "[config]") {
    const Variable token("OUTBOX_TEST_TOKEN", "t");
    const auto config = must_load(kTicket);
    const auto& close = config.tools.at(1);
    CHECK(close.name == "create_ticket:close");
    CHECK(close.compensates_tool == "create_ticket");
    CHECK(close.write);
    CHECK(close.concurrency == 16);
    CHECK(close.rate_per_second == 2.0);
    CHECK(close.timeout == 3s);
    CHECK(close.retry.initial == 100ms);
    CHECK(close.retry.max_attempts == 3);
    CHECK(close.reconcile.settle == 1s);  // of the defaults: it is another look-up
    CHECK(close.consistency == "strong");
    CHECK(close.compensations.empty());
    CHECK(close.dedup_fields.empty());
    CHECK_FALSE(close.arguments);
    CHECK(close.source.find("url"));
    REQUIRE(close.reconcile_by);
    CHECK(std::get<config::HttpRequest>(*close.reconcile_by).rules.at(0).then.value == "found");
}

TEST_CASE("the database may come from elsewhere", "[config]") {
    const Variable unset("OUTBOX_TEST_DSN", nullptr);
    const Folder folder;
    const auto file =
        folder.write("a.yaml", "version: 1\ndatabase:\n  dsn: ${env:OUTBOX_TEST_DSN}\n");
    CHECK_FALSE(config::load(file).config);
    const auto elsewhere = config::load(file, {.database_elsewhere = true});
    REQUIRE(elsewhere.config);
    CHECK_FALSE(elsewhere.config->database.declared());
    const auto included = config::load(
        folder.write("b.yaml", "version: 1\ninclude: [a.yaml]\n"), {.database_elsewhere = true}
    );
    CHECK(included.config);
    CHECK_FALSE(must_load("version: 1\n").database.declared());
    CHECK(must_load("version: 1\ndatabase: { embedded: {} }\n").database.declared());
    const auto dsn = must_load("version: 1\ndatabase: { dsn: \"host=/run dbname=x\" }\n");
    CHECK(dsn.database.declared());
    CHECK(dsn.database.dsn.value == "host=/run dbname=x");
    CHECK(dsn.database.dsn.mark.line == 2);
}

TEST_CASE("empty sections are as good as none", "[config]") {
    const auto config =
        must_load("version: 1\nworker:\nadmin:\ntools:\ncredentials:\ndefaults:\n  retry:\n");
    CHECK(config.worker.concurrency == 256);
    CHECK(config.admin.host == "127.0.0.1");
    CHECK(config.tools.empty());
}

TEST_CASE("included files add members, in the order of their names", "[config]") {
    const Folder folder;
    const auto file = folder.write(
        "outboxd.yaml",
        "version: 1\ninclude: [tools.d/*.yaml]\ntools:\n  first: { execute: { type: log } }\n"
    );
    folder.write("tools.d/b.yaml", "tools:\n  third: { execute: { type: log } }\n");
    folder.write(
        "tools.d/a.yaml", "version: 1\ntools:\n  second: { execute: { type: log }, rate: 1/s }\n"
    );
    folder.write("tools.d/ignored.txt", "no: [yaml");
    folder.write("tools.d/c.yaml", "");
    const auto loaded = config::load(file);
    CHECK(config_test::text_of(loaded.diagnostics).empty());
    REQUIRE(loaded.config);
    REQUIRE(loaded.config->tools.size() == 3);
    CHECK(loaded.config->tools[0].name == "first");
    CHECK(loaded.config->tools[1].name == "second");
    CHECK(loaded.config->tools[2].name == "third");
    CHECK(*loaded.config->tools[1].mark.file == folder.path() + "/tools.d/a.yaml");
    CHECK(loaded.config->tools[1].mark.line == 3);
}

TEST_CASE("a mistake in an included file names that file", "[config]") {
    const Folder folder;
    const auto file =
        folder.write("outboxd.yaml", "version: 1\ninclude: [tools.d/*.yaml]\nworkr: {}\n");
    folder.write("tools.d/a.yaml", "tools:\n  t: { exec: {} }\n");
    folder.write("tools.d/b.yaml", "tools: [\n");
    const auto said = config_test::text_of(config::load(file).diagnostics);
    CHECK_THAT(said, ContainsSubstring("/outboxd.yaml:3:1: error: unknown key workr"));
    CHECK_THAT(said, ContainsSubstring("/tools.d/a.yaml:2:8: error: unknown key tools.t.exec"));
    CHECK_THAT(said, ContainsSubstring("/tools.d/b.yaml:2:1: error: not YAML"));
    CHECK_THAT(said, ContainsSubstring("did you mean execute?"));
}

TEST_CASE("a folder with wildcards in its name is taken as it is", "[config]") {
    const Folder folder;
    const auto file = folder.write("odd[1]*/outboxd.yaml", "version: 1\ninclude: [t.yaml]\n");
    folder.write("odd[1]*/t.yaml", "tools:\n  t: { execute: { type: log } }\n");
    const auto loaded = config::load(file);
    CHECK(config_test::text_of(loaded.diagnostics).empty());
    REQUIRE(loaded.config);
    CHECK(loaded.config->tools.size() == 1);
}

TEST_CASE("a command tool", "[config]") {
    const auto config = must_load(R"(version: 1
tools:
  print:
    effect: write
    execute:
      type: command
      argv: [/bin/print, "--order={{ arguments.order }}", 7]
      stdin: "{{ arguments.text | raw }}"
      env: { LANG: C.UTF-8, COPIES: 2 }
      cwd: /tmp
      stdout: text
      allow_dash: true
      exit_codes: { 0: succeeded, 75: retry, default: unknown }
    reconcile: { type: command, argv: [look], exit_codes: { 0: found, 1: absent, default: inconclusive } }
)");
    const auto& t = tool(config, "print");
    const auto* command = std::get_if<config::Command>(&t.execute);
    REQUIRE(command);
    CHECK(command->argv.size() == 3);
    CHECK(command->argv[2].value == "7");
    CHECK(command->stdin_text->value == "{{ arguments.text | raw }}");
    CHECK(command->env.at(1).second.value == "2");
    CHECK(command->cwd == "/tmp");
    CHECK(command->stdout_text);
    CHECK(command->allow_dash);
    REQUIRE(command->exit_codes.size() == 3);
    CHECK(command->exit_codes[2].first == "default");
    CHECK(command->exit_codes[2].second.value == "unknown");
    CHECK(std::holds_alternative<config::Command>(*t.reconcile_by));
}

TEST_CASE("manual reconciliation is allowed and warned about", "[config]") {
    const auto loaded = load_text(
        "version: 1\ntools:\n  fax:\n    effect: write\n    execute: { type: command, argv: [fax] "
        "}\n"
        "    reconcile: { type: manual, reason: the fax keeps no list, after_absent: hold }\n"
    );
    REQUIRE(loaded.config);
    CHECK(loaded.diagnostics.all().size() == 1);
    const auto& fax = loaded.config->tools.at(0);
    CHECK(std::get<config::Manual>(*fax.reconcile_by).reason == "the fax keeps no list");
    CHECK(fax.reconcile.after_absent == "hold");
}

TEST_CASE("addresses to listen on", "[config]") {
    auto admin = [](const std::string& members) {
        return must_load("version: 1\nadmin: { " + members + " }\n").admin;
    };
    CHECK(admin("listen: \"[::1]:80\"").host == "::1");
    CHECK(admin("listen: localhost:0").port == 0);
    CHECK(admin("listen: 127.0.0.2:1").host == "127.0.0.2");
    CHECK(admin("listen: 0.0.0.0:9464, token_file: /t").token_file == "/t");
    CHECK(must_load("version: 1\nmcp: { token_file: /m }\n").mcp.token_file == "/m");
    // A token for agents alone does not guard the page.
    CHECK(load_text("version: 1\nadmin: { listen: 0.0.0.0:9464 }\nmcp: { token_file: /m }\n")
              .diagnostics.has_errors());
    CHECK(admin("hosts: [desk.example.com]").hosts.at(0) == "desk.example.com");
    for (const auto* bad :
         {"::1:80", "127.0.0.1", ":80", "a:65536", "a:-1", "a:80x", "127.evil.example:80"}) {
        INFO(bad);
        CHECK(load_text(std::string("version: 1\nadmin: { listen: \"") + bad + "\" }\n")
                  .diagnostics.has_errors());
    }
}

TEST_CASE("an alias tells its mistake once", "[config]") {
    const auto loaded = load_text(
        "version: 1\ntools:\n  a: &t { execute: { type: log }, timout: 3s }\n  b: *t\n  c: *t\n"
    );
    // Each tool is named in its message; the place is the same.
    for (const auto& diagnostic : loaded.diagnostics.all()) CHECK(diagnostic.mark.line == 3);
    CHECK(loaded.diagnostics.all().size() == 3);
}

TEST_CASE("the address of a proxy, and who goes without", "[config]") {
    const Folder folder;
    const auto secret = folder.write("proxy", "p@ss:/w%41rd\n");
    const auto config = must_load(
        R"(version: 1
database: { embedded: {} }
defaults: { http: { proxy: "http://us%65r:${file:)" +
        secret + R"(}@[2001:db8::1]:3128/" } }
tools:
  a: { execute: { type: log } }
  b: { http: { proxy: none }, execute: { type: log } }
  c: { http: { proxy: "http://proxy.example:80" }, execute: { type: log } }
)"
    );
    const auto& proxy = tool(config, "a").http.proxy;
    REQUIRE(proxy);
    CHECK(proxy->host == "2001:db8::1");
    CHECK(proxy->port == 3128);
    CHECK(proxy->user == "user");
    CHECK(proxy->secret.value == "p@ss:/wArd");
    CHECK_FALSE(tool(config, "b").http.proxy);
    CHECK(tool(config, "c").http.proxy->host == "proxy.example");
    CHECK(tool(config, "c").http.proxy->user.empty());
    CHECK(config::print(config).find("p@ss") == std::string::npos);
    CHECK(config::print(config).find("wArd") == std::string::npos);
}

TEST_CASE(
    "credentials of every kind, and their files are read again with the next load", "[config]"
) {
    const Folder folder;
    folder.write("secret", "first-secret\n");
    folder.write("client.pem", "-----BEGIN CERTIFICATE-----\n");
    const auto text = R"(version: 1
database: { embedded: {} }
credentials:
  graph:
    kind: oauth2_client_credentials
    token_url: https://auth.example/token
    client_id: me
    client_secret_file: DIR/secret
    scope: a b
    client_auth: post
  svix: { kind: standard_webhooks, secret_file: DIR/secret }
  cert: { kind: mtls, cert_file: DIR/client.pem, key_file: DIR/secret }
tools:
  t:
    effect: read
    execute: { type: http, method: GET, url: https://h.example/, credential: graph, mtls: cert }
)";
    std::string yaml = text;
    for (auto at = yaml.find("DIR"); at != std::string::npos; at = yaml.find("DIR")) {
        yaml.replace(at, 3, folder.path());
    }
    const auto config = must_load(yaml);
    const auto& graph = config.credentials.at("graph");
    CHECK(graph.kind == config::Credential::Kind::oauth2_client_credentials);
    CHECK(graph.token_url.value == "https://auth.example/token");
    CHECK(graph.user_or_name == "me");
    CHECK(graph.secret.value == "first-secret");
    CHECK(graph.scope == "a b");
    CHECK(graph.secret_in_body);
    CHECK(config.credentials.at("svix").secret.value == "first-secret");
    CHECK(config.credentials.at("cert").certificate == "-----BEGIN CERTIFICATE-----");
    CHECK(config.credentials.at("cert").secret.value == "first-secret");
    CHECK(std::get<config::HttpRequest>(tool(config, "t").execute).mtls->value == "cert");
    const auto printed = config::print(config);
    CHECK(printed.find("first-secret") == std::string::npos);
    CHECK(printed.find("BEGIN") == std::string::npos);

    folder.write("secret", "second-secret\n");
    const auto again = must_load(yaml);
    CHECK(again.credentials.at("graph").secret.value == "second-secret");
    CHECK(again.credentials.at("cert").secret.value == "second-secret");
}
