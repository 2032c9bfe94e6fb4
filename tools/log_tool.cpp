#include "tools/log_tool.hpp"

namespace tools {

asio::awaitable<outbox::Outcome> LogAction::perform(outbox::ToolCall call, outbox::Deadline) {
    static const outbox::Json kLogged(outbox::Json::Object{{"logged", outbox::Json(true)}});
    log_.info(
        "tool log",
        {{"operation_id", call.intent.id.value},
         {"tool", call.intent.tool},
         {"attempt", std::to_string(call.attempt)}}
    );
    co_return outbox::Succeeded{kLogged, {}};
}

asio::awaitable<outbox::Verdict> NoProbe::ask(outbox::ToolCall, outbox::Deadline) {
    co_return outbox::Inconclusive{{.code = "manual", .message = reason_}};
}

}  // namespace tools
