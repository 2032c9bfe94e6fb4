#include "tools/mcp_http_end.hpp"

#include <utility>

#include "tools/http_tool.hpp"

namespace tools {

using outbox::Cause;
using Posted = McpChannel::Posted;

namespace {

bool is_stream(const HttpResponse& response) {
    return response.header("Content-Type").value_or("").starts_with("text/event-stream");
}

}  // namespace

McpEnd unopened(const Posted& posted, const std::string& what) {
    McpEnd end;
    if (const auto* failure = std::get_if<HttpFailure>(&posted.result)) {
        const auto& error = failure->error;
        end = failure->sent ? not_called("not_sent_mcp", what + " had no answer: " + error.message)
                            : not_called(error.code, error.message);
    } else {
        const auto& response = std::get<HttpResponse>(posted.result);
        auto status = "answered with status " + std::to_string(response.status);
        // The transport of 2024-11-05 is a GET that never ends and an address of its own to POST
        // to.
        if (what == "initialize" && (response.status == 404 || response.status == 405)) {
            status +=
                "; nothing of MCP is posted to here: it takes the address of a Streamable HTTP "
                "endpoint (often /mcp, not /sse). A server that has only the old HTTP+SSE "
                "transport can be started by command: with a bridge such as mcp-remote";
        }
        end = not_called(
            "not_sent_mcp", what + ": " + (posted.problem.empty() ? status : posted.problem)
        );
        end.stale = response.token_was_stale;
    }
    end.signal = lane_signal(posted.result);
    return end;
}

McpEnd hopeless(const Posted& posted, const McpGreeting& greeting) {
    auto end = not_called("not_sent_mcp", greeting.problem);
    end.signal = lane_signal(posted.result);
    return end;
}

McpEnd end_of(Posted posted) {
    auto* response = std::get_if<HttpResponse>(&posted.result);
    if (posted.answer) {
        auto answer = to_answer(*posted.answer);
        if (response != nullptr) {
            answer.status = response->status;
            answer.headers = std::move(response->headers);
        }
        McpEnd end;
        end.what = std::move(answer);
        return end;
    }
    if (!posted.problem.empty()) return lost(Cause::unreadable, "unreadable", posted.problem);
    if (response == nullptr) {
        auto& failure = std::get<HttpFailure>(posted.result);
        McpEnd end;
        end.what = McpFailure{failure.sent, failure.cause, std::move(failure.error)};
        return end;
    }
    if (response->status < 200 || response->status >= 300) {
        McpEnd end;
        end.what = to_answer(std::move(*response));
        return end;
    }
    if (response->truncated) {
        return lost(Cause::unreadable, "unreadable", "the answer is longer than limits.response");
    }
    if (is_stream(*response)) {
        return lost(Cause::reset, "reset", "the stream ended without an answer to the call");
    }
    return lost(Cause::unreadable, "unreadable", "what came is no answer to the call");
}

}  // namespace tools
