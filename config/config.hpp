#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/value.hpp"

// The whole configuration on one screen: plain structs with their defaults (contract/config.md).
// Templates and conditions are kept as text and values with places; tools/ compiles them.
namespace config {

using Duration = std::chrono::milliseconds;
using namespace std::chrono_literals;

// A string that is never printed.
struct Secret {
    std::string value;
    std::string source;  // how the file says it (${cred:name}); empty: written inline
    Mark mark;
};

struct Embedded {
    std::string data_dir = "./.outboxd/postgres";
};

// One of several databases that a daemon serves; its name is its namespace.
struct Source {
    std::string name;
    Secret dsn;
    Mark mark;
};

struct Database {
    Secret dsn;
    std::string key_namespace = "default";
    std::optional<Embedded> embedded;
    std::vector<Source> sources;  // instead of the three above
    Mark mark;                    // of the section, for what is found out later
    // False: --database or OUTBOXD_DATABASE has to name one.
    [[nodiscard]] bool declared() const {
        return embedded || !dsn.value.empty() || !sources.empty();
    }
    [[nodiscard]] const Source* find(std::string_view name) const {
        for (const auto& source : sources) {
            if (source.name == name) return &source;
        }
        return nullptr;
    }
};

struct Worker {
    std::string name = "outboxd";
    int concurrency = 256;
    Duration poll_busy = 5ms;
    Duration poll_idle = 1s;
    bool wakeup = true;  // auto | off
    Duration drain_timeout = 30s;
    Duration lease_margin = 10s;
};

struct Admin {
    std::string host = "127.0.0.1";
    int port = 9464;
    std::optional<std::string> token_file;
    std::vector<std::string> hosts;
};

// What agents that speak MCP meet, on /mcp and with outboxd mcp.
struct McpFace {
    std::optional<std::string> run_header;  // of /mcp: names the run; empty: _meta alone does
    Duration wait = 30s;                    // how long a call waits for its end
    std::optional<std::string> token_file;  // of /mcp; empty: admin.token_file
};

struct LogSettings {
    std::string level = "info";
    std::string format = "json";  // json | text
};

struct Limits {
    std::size_t arguments = 1024 * 1024;
    std::size_t result = 64 * 1024;
    std::size_t response = 1024 * 1024;
};

struct Retention {
    Duration payloads = std::chrono::hours{24 * 30};
    Duration events = std::chrono::hours{24 * 90};
    std::optional<Duration> keys;  // empty: forever
};

struct Retry {
    int max_attempts = 8;
    Duration initial = 2s;
    Duration max = 5min;
    double multiplier = 2;
    double jitter = 0.5;
    Duration give_up_after = 24h;
};

struct Reconcile {
    Duration settle = 10s;
    int confirmations = 1;
    Duration interval = 15s;
    Duration max_interval = 10min;
    Duration give_up_after = 24h;
    std::string after_absent = "retry";  // retry | hold
};

// An HTTP proxy: CONNECT for https, the absolute form for http.
struct Proxy {
    std::string host;  // name, IPv4, or IPv6 without brackets
    int port = 0;
    std::string user;  // decoded; empty: none
    Secret secret;     // value: the password, decoded; source: the whole URL as the file has it
};

struct Http {
    bool tls_verify = true;
    std::optional<std::string> ca_file;
    int max_connections_per_host = 64;
    bool allow_private_hosts = true;
    std::optional<Proxy> proxy;  // empty: directly
};

// What tools get that do not say otherwise.
struct Defaults {
    Duration timeout = 20s;
    Duration connect_timeout = 5s;
    Retry retry;
    Reconcile reconcile;
    Http http;
};

struct Credential {
    enum class Kind {
        bearer,
        basic,
        header,
        query,
        oauth2_client_credentials,
        standard_webhooks,
        mtls,
    };
    std::string name;
    Mark mark;
    Kind kind = Kind::bearer;
    std::string user_or_name;  // basic: username; header, query: its name; oauth2: client_id
    // bearer: token; basic: password; header, query: value; oauth2: client secret;
    // standard_webhooks: whsec_…; mtls: the key's PEM
    Secret secret;
    // oauth2_client_credentials:
    Text token_url;
    bool secret_in_body = false;  // client_auth: post; else basic
    std::string scope;            // empty: not sent
    std::string audience;         // empty: not sent
    // mtls:
    std::string cert_file;
    std::string key_file;
    std::string certificate;  // PEM, its chain behind it
    Mark cert_mark;
};

struct Key {
    std::string encoding = "hex";  // hex | uuid | base64url | base32hex | short
    std::string prefix;
    std::size_t max_length = 255;
    std::optional<Duration> window = 24h;  // empty: forever
    bool window_given = false;             // in the file: the provider's own word
    Mark mark;
};

// One line of outcomes: or verdicts:; `when` is compiled by tools/.
struct Rule {
    Mark mark;
    Value when;
    Text then;
    std::optional<Value> result;
    std::optional<Text> code;
    std::optional<Text> message;
    std::optional<Text> retry_after;
    bool proves_absence = false;
};

// What a look-up reads of an answer.
struct Listing {
    std::optional<Text> items;
    std::optional<Value> match;
    std::optional<Value> must_equal;
    std::optional<Value> result;
    std::optional<Value> paginate;
};

struct HttpRequest : Listing {
    Mark mark;
    Text method;
    Text url;
    std::optional<Text> credential;
    std::optional<Text> mtls;  // a credential of kind mtls beside the other one
    std::vector<std::pair<Text, Text>> headers;
    std::vector<std::pair<Text, Value>> query;
    enum class Body { none, json, form, text, multipart } body = Body::none;
    Value body_value;         // json, form, multipart
    Text body_text;           // text
    bool crlf = false;        // newline: crlf
    std::vector<Rule> rules;  // outcomes: of execute, verdicts: of reconcile
    bool has_rules = false;   // the key was there, even when empty
};

struct Command {
    Mark mark;
    std::vector<Text> argv;
    std::optional<Text> stdin_text;
    std::vector<std::pair<Text, Text>> env;
    std::optional<std::string> cwd;
    bool allow_dash = false;
    bool stdout_text = false;                              // stdout: text
    std::vector<std::pair<std::string, Text>> exit_codes;  // "0", "75", "default" → then
    std::vector<Rule> rules;
    bool has_rules = false;
    std::optional<Value> result;
};

struct Sql {
    Mark mark;
    std::optional<Secret> dsn;  // empty: the outbox's own database
    Text statement;
    std::string numbered;                            // … with $1, $2, … for its parameters
    std::vector<std::pair<Text, Value>> parameters;  // in that order
    std::optional<Duration> statement_timeout;       // empty: what the attempt's deadline leaves
    std::vector<Rule> rules;
    bool has_rules = false;
    std::optional<Value> result;
};

// A tool of an MCP server, which is reached by HTTP or started for each call.
struct Mcp : Listing {
    Mark mark;
    std::optional<HttpRequest> server;  // url, credential and mtls of it
    std::optional<Command> command;     // argv, env and cwd of it; one of the two
    Text tool;
    Value arguments;  // a mapping
    Value meta;       // further members of _meta; a mapping
    std::vector<Rule> rules;
    bool has_rules = false;
};

struct LogAction {
    Mark mark;
};

struct Manual {
    Mark mark;
    std::string reason;
};

// The same request once more, under the same key.
struct Resend {
    Mark mark;
};

using Execute = std::variant<HttpRequest, Command, Sql, Mcp, LogAction>;
using ReconcileBy = std::variant<HttpRequest, Command, Sql, Mcp, Resend, Manual>;

struct Tool {
    std::string name;  // a compensation is a tool of its own: create_ticket:close
    Mark mark;         // of its key
    std::string description;
    std::string title;  // for people; empty: the name
    bool write = true;
    std::optional<Value> arguments;  // JSON Schema
    std::vector<Text> dedup_fields;
    int concurrency = 0;  // 0: only the worker's limit
    std::optional<double> rate_per_second;
    Duration timeout = 20s;
    Duration connect_timeout = 5s;
    Retry retry;
    Reconcile reconcile;
    Http http;
    Key key;
    Execute execute;
    std::optional<ReconcileBy> reconcile_by;  // always there for write tools
    std::string consistency = "strong";       // strong | eventual
    std::vector<std::string> compensations;
    std::optional<std::string> compensates_tool;  // create_ticket of create_ticket:close
    std::vector<Text> redact;
    bool expose = false;
    bool destructive = false;
    Value source;  // the tool as the file has it: hashed into revision and request_hash
    // Some part could not be read at all, and was reported: nothing is compiled from the rest.
    bool unreadable = false;

    // Its effect lies in the outbox's own database: effect and record are one transaction.
    [[nodiscard]] bool own_transaction() const {
        const auto* sql = std::get_if<Sql>(&execute);
        return write && sql != nullptr && !sql->dsn;
    }
};

// What the other side is said to have answered, in tests:.
struct CannedAnswer {
    Mark mark;
    std::optional<int> status;     // http
    std::optional<int> exit_code;  // command
    std::optional<int> rpc_error;  // mcp, as the two below
    std::optional<bool> is_error;
    std::optional<std::string> result_type;
    std::optional<Value> rows;    // sql: a list of mappings
    std::optional<int> affected;  // sql, of a statement that returns none
    std::string sqlstate;         // sql: the server refused it
    std::vector<std::pair<Text, Text>> headers;
    std::optional<Value> body;         // sent as JSON; mcp: the result, or the error's members
    std::optional<Text> text;          // the raw body, standard output, or what the tool says
    std::optional<Text> stderr_text;   // command
    std::optional<std::string> fails;  // not_sent | timeout | reset | killed; then nothing else
};

// One answer, and what is to become of it.
struct TestAnswer {
    Mark mark;
    std::vector<CannedAnswer> pages;  // more than one: a listing that is read page by page
    Text then;
    std::optional<Value> result;
    std::optional<Text> code;
    std::optional<Text> message;
    std::optional<Duration> retry_after;
    Mark retry_after_mark;
};

// Only what is named is compared.
struct ExpectedRequest {
    Mark mark;
    std::optional<Text> method;
    std::optional<Text> url;
    std::vector<std::pair<Text, std::optional<Text>>> headers;  // without a text: must not be there
    std::optional<Value> json;
    std::optional<Value> form;
    std::optional<Text> text;
    std::optional<std::vector<Text>> argv;
    std::optional<Text> stdin_text;
    std::vector<std::pair<Text, std::optional<Text>>> env;
    std::optional<Text> tool;  // mcp
    std::optional<Value> arguments;
    std::optional<Text> statement;
    std::optional<Value> parameters;
    std::optional<Text> refused;  // the code: nothing is sent at all
};

struct TestPhase {
    std::optional<ExpectedRequest> request;
    std::vector<TestAnswer> answers;
};

// One member of tests:, run by check-config --tests without any network.
struct TestCase {
    Mark mark;
    std::string name;
    Text tool;
    std::optional<Value> arguments;
    std::string operation_id = "op-1";
    std::optional<std::string> key;  // instead of the derived one
    std::optional<std::string> run_id;
    std::optional<std::string> traceparent;
    int attempt = 1;
    std::optional<Text> created_at;
    std::optional<Text> first_sent_at;
    std::string original_id = "op-0";  // compensations only
    std::optional<Value> original_arguments;
    std::optional<Value> original_result;
    TestPhase execute;
    TestPhase reconcile;
};

struct Config {
    std::string file;
    Database database;
    Worker worker;
    Admin admin;
    McpFace mcp;
    LogSettings log;
    Limits limits;
    Retention retention;
    Defaults defaults;  // every tool has them merged in already
    std::map<std::string, Credential> credentials;
    std::vector<Tool> tools;  // in the order of the file, compensations behind their tool
    bool allow_failpoints = false;
    std::optional<Value> tests;        // as the file has them
    std::vector<TestCase> test_cases;  // and read
};

}  // namespace config
