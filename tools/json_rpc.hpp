#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/json.hpp"

// JSON-RPC 2.0, as MCP uses it.
namespace tools {

using RpcId = std::int64_t;

// One line of text each.
[[nodiscard]] std::string rpc_request(RpcId id, std::string_view method, outbox::Json params);
[[nodiscard]] std::string rpc_notification(std::string_view method);
[[nodiscard]] std::string rpc_result(const outbox::Json& id, outbox::Json result);
[[nodiscard]] std::string rpc_refusal(const outbox::Json& id, int code, std::string_view message);

// What came from the other side.
struct RpcMessage {
    enum class Kind {
        result,        // with id and result
        error,         // with code, and id unless it could not be read there
        request,       // asks us: method and id
        notification,  // method alone
        none,          // not JSON-RPC
    };
    Kind kind = Kind::none;
    outbox::Json id;
    std::string method;
    outbox::Json body;  // the result, or the error object
    std::optional<int> code;

    // Answers this request: the same number, not a text that looks like it.
    [[nodiscard]] bool answers(RpcId request) const;
};

// One message, or the messages of a batch (revision 2025-03-26). What is no JSON is one of kind
// none; the empty text is no message.
[[nodiscard]] std::vector<RpcMessage> parse_rpc(std::string_view text);

}  // namespace tools
