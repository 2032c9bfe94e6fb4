#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/api_request.hpp"
#include "daemon/http_server.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {

// One way to steer, with its body read: what to call, and which of its words are no refusal.
struct SteeringCall {
    std::function<std::string(outbox::pg::Client&)> call;
    std::vector<std::string_view> done;
};

// POST operations/{id}/{verb} but for compensate, and tools/{tool}/{verb}. Throws ApiProblem: 404
// for a verb that is not there, 400 for a body that is not the verb's.
[[nodiscard]] SteeringCall read_steering(
    const std::string& noun, const std::string& target, const std::string& verb, ApiBody body
);

// {"answer": word}, or the problem that the word is: 404 for not_found, else 409.
[[nodiscard]] ServerResponse steering_answer(const SteeringCall& call, const std::string& word);

}  // namespace outboxd
