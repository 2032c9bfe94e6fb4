#pragma once

#include <optional>
#include <variant>

#include "tools/answer.hpp"
#include "tools/json_rpc.hpp"
#include "tools/lane_signal.hpp"

namespace tools {

// A call without an answer.
struct McpFailure {
    // False: not a byte of the call was handed on, so there is definitely no effect. Whatever went
    // before it (discovery, initialize) has none.
    bool sent = false;
    outbox::Cause cause = outbox::Cause::other;
    outbox::Error error;
};

// How one tools/call ended.
struct McpEnd {
    std::variant<McpFailure, Answer> what;
    // What was kept from earlier (session, revision, token, headers) did not fit any more, and is
    // gone or corrected: after a definite "no effect" the same call may be made once more.
    bool stale = false;
    std::optional<LaneSignal> signal{};  // of the last answer over HTTP
};

// A message as conditions and extraction see it: the body is the result, or the error object; the
// text is what the tool says. A result that has no structuredContent, and JSON as its only text,
// gets that as structuredContent.
[[nodiscard]] Answer to_answer(const RpcMessage& message);

[[nodiscard]] McpEnd not_called(std::string code, std::string message);
[[nodiscard]] McpEnd lost(outbox::Cause cause, std::string code, std::string message);

}  // namespace tools
