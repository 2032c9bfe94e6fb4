#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "outbox/json.hpp"
#include "tools/child_process.hpp"
#include "tools/http_client.hpp"

namespace tools {

// A statement and what its parameters hold, by name and in the order of the statement. Numbers and
// booleans reach the database as they are written, arrays and objects as JSON text, null as NULL.
struct SentStatement {
    std::string statement;  // as the file has it, with :name
    std::vector<std::pair<std::string, outbox::Json>> parameters;
    bool own = false;  // on the outbox's own database, in one transaction with the record
};

// What leaves the process: a request, a command, or a statement. Made of a configuration without
// secrets when it is to be shown.
using SentRequest = std::variant<HttpRequest, ProcessSpec, SentStatement>;

// https://desk.example.com/api/tickets?limit=2, without a port that goes without saying.
[[nodiscard]] std::string url_of(const HttpRequest& request);

// The message as it goes over the wire (lines end in LF, behind a comment with the origin), or the
// command with its environment and input, or the statement with its parameters as comments.
[[nodiscard]] std::string to_text(const SentRequest& request);
// {type, method, url, headers, body}, {type, argv, env, cwd, stdin} or
// {type, database, statement, parameters}.
[[nodiscard]] outbox::Json to_json(const SentRequest& request);

}  // namespace tools
