#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/json.hpp"

// MCP's messages as a server reads and writes them, for every transport. Pure. The revisions differ
// in how a client introduces itself: since 2026-07-28 every request does (called modern here),
// before that a session is opened by initialize.
namespace outboxd::mcp {

inline constexpr std::string_view kModernRevision = "2026-07-28";
// All that are spoken, the latest first.
[[nodiscard]] const std::vector<std::string_view>& revisions();
[[nodiscard]] bool is_legacy(std::string_view revision);
// The one to answer an initialize with.
[[nodiscard]] std::string_view negotiated(std::string_view wanted);

// JSON-RPC's error codes, and MCP's own.
enum : int {
    kParseError = -32700,
    kInvalidRequest = -32600,
    kMethodNotFound = -32601,
    kInvalidParams = -32602,
    kHeaderMismatch = -32020,
    kUnsupportedRevision = -32022,
};

// Why a message is not taken; a protocol error, which says that nothing was done.
struct Fault {
    int code = kInvalidRequest;
    std::string message;
    outbox::Json data;      // null: none
    int http_status = 200;  // what the answer goes with over HTTP
};

struct Message {
    enum class Kind {
        request,
        notification,
        response,  // to a request that we never made
        fault,     // not taken: fault says why, id whom to tell
    };
    Kind kind = Kind::fault;
    outbox::Json id;  // of a request; null: unknown
    std::string method;
    outbox::Json params{outbox::Json::Object{}};
    bool modern = false;
    std::string revision;  // as the request names it; empty: it does not
    Fault fault;

    // A member of params._meta; null when it is not there.
    [[nodiscard]] const outbox::Json* meta(std::string_view name) const;
};

// One message: every revision that is spoken forbids batches.
[[nodiscard]] Message read_message(std::string_view text);

[[nodiscard]] Fault unsupported_revision(std::string_view requested);

// One line each.
[[nodiscard]] std::string result_text(const Message& request, outbox::Json result);
[[nodiscard]] std::string fault_text(const outbox::Json& id, const Fault& fault);
[[nodiscard]] std::string progress_text(
    const outbox::Json& token, int progress, int total, std::string_view message
);

}  // namespace outboxd::mcp
