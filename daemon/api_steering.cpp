#include "daemon/api_steering.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace outboxd {

namespace {

using outbox::pg::Client;

SteeringCall retry(const std::string& id, ApiBody& body) {
    return {
        [id, reason = body.text("reason")](Client& client) { return client.retry(id, reason); },
        {"armed"}
    };
}

SteeringCall cancel(const std::string& id, ApiBody& body) {
    return {
        [id, reason = body.optional_text("reason")](Client& client) {
            return client.cancel(id, reason);
        },
        {"cancelled"}
    };
}

SteeringCall resolve(const std::string& id, ApiBody& body) {
    outbox::pg::ResolveCall call{
        .operation_id = id,
        .verdict = body.text("verdict"),
        .reason = body.text("reason"),
        .actor = body.text("actor"),
        .expected_epoch = body.integer("expected_epoch"),
        .result = body.json("result"),
    };
    if (call.verdict != "applied" && call.verdict != "not_applied") {
        throw ApiProblem(
            400, "Bad request", "verdict is applied or not_applied", {{"pointer", "/verdict"}}
        );
    }
    return {
        [call = std::move(call)](Client& client) { return client.resolve(call); }, {"resolved"}
    };
}

SteeringCall acknowledge(const std::string& id, ApiBody& body) {
    return {
        [id, reason = body.text("reason"), actor = body.text("actor")](Client& client) {
            return client.acknowledge(id, reason, actor);
        },
        {"acknowledged"}
    };
}

SteeringCall probe(const std::string& id, ApiBody&) {
    return {[id](Client& client) { return client.probe(id); }, {"asked", "probing"}};
}

SteeringCall pause(const std::string& tool, ApiBody& body) {
    return {
        [tool, reason = body.text("reason")](Client& client) {
            return client.pause_tool(tool, reason);
        },
        {"paused"}
    };
}

SteeringCall resume(const std::string& tool, ApiBody&) {
    return {[tool](Client& client) { return client.resume_tool(tool); }, {"resumed"}};
}

using Verb = SteeringCall (*)(const std::string& target, ApiBody& body);

const std::map<std::string, Verb>& verbs_of(const std::string& noun) {
    static const std::map<std::string, Verb> kOperations{
        {"acknowledge", acknowledge},
        {"cancel", cancel},
        {"probe", probe},
        {"resolve", resolve},
        {"retry", retry},
    };
    static const std::map<std::string, Verb> kTools{{"pause", pause}, {"resume", resume}};
    static const std::map<std::string, Verb> kNothing;
    if (noun == "operations") return kOperations;
    return noun == "tools" ? kTools : kNothing;
}

// What a refusal means, for whoever does not know the words by heart.
std::string explained(const std::string& word) {
    static const std::map<std::string, std::string> kWords{
        {"already_cancelled", "It was cancelled before."},
        {"already_failed", "It has failed already, without effect; there is nothing to cancel."},
        {"not_failed", "Only what has failed can be armed again."},
        {"not_found", "There is nothing of this name."},
        {"not_unknown", "It is not unknown, or not any more."},
        {"nothing_to_acknowledge", "It is not flagged, or it is not final: then resolve it."},
        {"pruned",
         "Its arguments were pruned: enqueue it again with retry_failed and the arguments."},
        {"stale", "There was another attempt since: look at the operation again."},
        {"too_early", "The last attempt may still arrive: wait for its deadline and settle."},
        {"too_late", "It is being carried out, or has been."},
    };
    const auto found = kWords.find(word);
    return found == kWords.end() ? "The answer is " + word + "." : found->second;
}

}  // namespace

SteeringCall read_steering(
    const std::string& noun, const std::string& target, const std::string& verb, ApiBody body
) {
    const auto& verbs = verbs_of(noun);
    const auto found = verbs.find(verb);
    if (found == verbs.end()) throw ApiProblem(404, "Not found", "There is nothing at this path.");
    auto call = found->second(target, body);
    body.finish();
    return call;
}

ServerResponse steering_answer(const SteeringCall& call, const std::string& word) {
    if (std::find(call.done.begin(), call.done.end(), word) == call.done.end()) {
        const int status = word == "not_found" ? 404 : 409;
        const auto* title = status == 404 ? "Not found" : "Refused";
        return ApiProblem(status, title, explained(word), {{"answer", word}}).response();
    }
    outbox::Json body;
    body.set("answer", word);
    ServerResponse response;
    response.body = outbox::to_text(body);
    return response;
}

}  // namespace outboxd
