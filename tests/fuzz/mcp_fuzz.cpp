// What an MCP server may send: a stream of events in pieces, the JSON-RPC messages in it (or in a
// document, or in lines), and the task that one of them may tell of. A control line (how it is
// read, size of the pieces), then the bytes. However the network cuts it, the same events; nothing
// but an answer to this very request is one; and what is no whole result of a tool never succeeds.
#include <algorithm>

#include "tests/fuzz/harness.hpp"
#include "tools/event_stream.hpp"
#include "tools/mcp_answer.hpp"
#include "tools/mcp_protocol.hpp"
#include "tools/mcp_task.hpp"

namespace {

using fuzz::must;
using tools::RpcMessage;

constexpr std::size_t kMaxEvent = 4096;
constexpr tools::RpcId kId = 7;

struct Read {
    std::vector<tools::EventStream::Event> events;
    std::string last_id;
    bool too_long = false;
};

Read read(std::string_view bytes, std::size_t piece) {
    tools::EventStream stream(kMaxEvent);
    Read out;
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        text += bytes.substr(at, piece);
        for (auto& event : stream.take(text)) out.events.push_back(std::move(event));
        if (stream.too_long()) break;
    }
    out.last_id = stream.last_id();
    out.too_long = stream.too_long();
    return out;
}

bool same(const Read& a, const Read& b) {
    if (a.too_long || b.too_long) return a.too_long == b.too_long;
    return a.last_id == b.last_id &&
           std::equal(
               a.events.begin(),
               a.events.end(),
               b.events.begin(),
               b.events.end(),
               [](const auto& x, const auto& y) { return x.type == y.type && x.data == y.data; }
           );
}

void check_answer(const RpcMessage& message) {
    must(message.answers(kId), "an answer is one to this request");
    const auto answer = tools::to_answer(message);
    if (message.kind == RpcMessage::Kind::error) {
        must(!answer.is_error.has_value(), "an error is no result of a tool");
        must(answer.body.has_value(), "an error has a body");
        return;
    }
    must(message.kind == RpcMessage::Kind::result, "an answer is a result or an error");
    fuzz::check_storable(*answer.body);
    const bool whole = message.body.find("content") != nullptr ||
                       message.body.find("structuredContent") != nullptr;
    if (answer.is_error == false) must(whole, "only a tool's result can be a success");
    const auto task = tools::read_created_task(message);
    if (!task) return;
    must(!(answer.is_error == false && answer.result_type == "complete"), "a task is no result");
    must(task->id.size() <= 1024, "a task's id is short");
    must(task->poll >= std::chrono::milliseconds(50), "a task is not looked at without a pause");
    must(task->poll <= std::chrono::seconds(30), "a task is looked at again");
    must(task->id.find('\0') == std::string::npos, "a task's id can be stored");
}

void check_messages(std::string_view text, bool modern) {
    const auto messages = tools::parse_rpc(text);
    tools::McpInbox inbox(kId, modern);
    const auto replies = inbox.take(messages);
    must(replies.size() <= messages.size(), "one reply for a message at most");
    must(!modern || replies.empty(), "a modern server is not answered");
    for (const auto& reply : replies) {
        must(outbox::parse_json(reply).value.has_value(), "a reply is JSON", reply);
        must(reply.find('\n') == std::string::npos, "a reply is one line", reply);
    }
    if (inbox.answer()) check_answer(*inbox.answer());
    for (const auto& message : messages) {
        static_cast<void>(tools::read_discover(message));
        static_cast<void>(tools::read_initialize(message));
        static_cast<void>(tools::read_task(message));
        static_cast<void>(tools::read_mirrors(message.body, "t"));
        static_cast<void>(tools::read_wants_task(message.body, "t"));
    }
}

}  // namespace

void fuzz::run_input(std::string_view input) {
    const auto parts = fuzz::parts_of(input, 2);
    const auto control = parts[0];
    const auto bytes = parts[1];
    const bool modern = fuzz::choice(control, 0, 2) == 1;
    const auto stream = read(bytes, 1 + fuzz::choice(control, 1, 250));
    must(same(stream, read(bytes, 1)), "byte by byte the same events", bytes);
    must(same(stream, read(bytes, bytes.size() + 1)), "at once the same events", bytes);
    for (const auto& event : stream.events) {
        must(event.data.size() <= kMaxEvent, "no event is longer than allowed", bytes);
        check_messages(event.data, modern);
    }
    check_messages(bytes, modern);
}
