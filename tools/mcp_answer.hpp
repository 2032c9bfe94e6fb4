#pragma once

#include <optional>
#include <string>
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

// A call whose answer was a task (it goes on behind it), and whose own end is not known.
struct McpTaskEnd {
    enum class How {
        working,         // when it was looked at last
        input_required,  // it waits for somebody who can answer it
        cancelled,
        forgotten,  // the server does not know it (any more)
    };
    How how = How::working;
    std::string id;
    std::string message;  // what the server says about it
};

// How one tools/call ended.
struct McpEnd {
    std::variant<McpFailure, Answer, McpTaskEnd> what;
    bool of_task = false;  // the answer is the one that the task ended with
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
