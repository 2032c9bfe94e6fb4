#pragma once

#include <string>
#include <variant>

#include "outbox/json.hpp"
#include "tools/child_process.hpp"
#include "tools/http_client.hpp"

namespace tools {

// What leaves the process: a request, or a command. Made of a configuration without secrets when
// it is to be shown.
using SentRequest = std::variant<HttpRequest, ProcessSpec>;

// https://desk.example.com/api/tickets?limit=2, without a port that goes without saying.
[[nodiscard]] std::string url_of(const HttpRequest& request);

// The message as it goes over the wire (lines end in LF, behind a comment with the origin), or the
// command with its environment and input.
[[nodiscard]] std::string to_text(const SentRequest& request);
// {type, method, url, headers, body} or {type, argv, env, cwd, stdin}.
[[nodiscard]] outbox::Json to_json(const SentRequest& request);

}  // namespace tools
