#include "tools/mcp_channel.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "tools/answer.hpp"
#include "tools/event_stream.hpp"
#include "tools/running_command.hpp"

namespace tools {
namespace {

using outbox::Cause;
using outbox::Deadline;
using std::chrono::nanoseconds;

// Refusals and pongs to a server: it waits for them with the answer.
constexpr auto kReplyTime = std::chrono::seconds{5};
// How long until a broken stream is asked on, and how often.
constexpr nanoseconds kResumePause = std::chrono::milliseconds{500};
constexpr nanoseconds kShortestPause = std::chrono::milliseconds{1};
constexpr nanoseconds kLongestPause = std::chrono::seconds{10};
constexpr int kMostResumes = 1000;

bool is_good(const HttpResponse& response) {
    return response.status >= 200 && response.status < 300;
}

bool is_event_stream(const HttpResponse& response) {
    constexpr std::string_view kType = "text/event-stream";
    const auto type = response.header("Content-Type");
    return type && same_header_name(std::string_view(*type).substr(0, kType.size()), kType);
}

HttpFailure timed_out() {
    return {.sent = true, .cause = Cause::timeout, .error = {"timeout", "No answer came in time."}};
}

}  // namespace

// Reads an answer that is a stream of events, and replies to what the server asks meanwhile.
class McpChannel::Listening final : public AnswerReader {
 public:
    Listening(McpChannel& channel, RpcId id, const McpPeer& peer)
        : channel_(channel),
          peer_(peer),
          inbox_(id, peer.modern),
          events_(channel.options_.max_event_bytes) {}

    asio::awaitable<bool> read(const HttpResponse& head, std::string& body) override {
        if (!is_good(head) || !is_event_stream(head)) co_return false;
        const auto events = events_.take(body);
        for (const auto& event : events) {
            auto replies = inbox_.take(parse_rpc(event.data));
            for (auto& message : replies) {
                const auto until = Deadline::after(kReplyTime).at;
                auto replying = channel_.send(
                    std::move(message), peer_, {std::min(until, channel_.options_.deadline.at)}
                );
                // Whether it arrived or not: the answer to the call is what counts.
                const auto ignored = co_await std::move(replying);
                static_cast<void>(ignored);
            }
        }
        co_return ended();
    }

    [[nodiscard]] bool ended() const {
        return inbox_.answer() || inbox_.flooded() || events_.too_long();
    }
    [[nodiscard]] McpInbox& inbox() { return inbox_; }
    [[nodiscard]] EventStream& events() { return events_; }

 private:
    McpChannel& channel_;
    const McpPeer& peer_;
    McpInbox inbox_;
    EventStream events_;
};

void add_protocol_headers(
    HttpRequest& request, const McpPeer& peer, std::string_view method, std::string_view name
) {
    // Older ones do not know it, and some servers refuse what they do not know.
    constexpr std::string_view kFirstWithHeader = "2025-06-18";
    auto& headers = request.headers;
    if (peer.version >= kFirstWithHeader) {
        headers.emplace_back("MCP-Protocol-Version", peer.version);
    }
    if (!peer.session.empty()) headers.emplace_back("Mcp-Session-Id", peer.session);
    if (!peer.modern) return;
    headers.emplace_back("Mcp-Method", method);
    if (!name.empty()) headers.emplace_back("Mcp-Name", header_value(name));
}

void McpChannel::sign(HttpRequest& request) const {
    options_.credential.put_on(request, options_.scope, std::chrono::system_clock::now());
}

asio::awaitable<HttpResult> McpChannel::send(
    std::string message, const McpPeer& peer, Deadline deadline
) {
    auto request = options_.base;
    request.body = std::move(message);
    add_protocol_headers(request, peer, {}, {});
    sign(request);
    return options_.sender.send(std::move(request), deadline);
}

asio::awaitable<McpChannel::Posted> McpChannel::post(
    Request request, McpPeer peer, Headers headers
) {
    auto sent = options_.base;
    sent.body = std::move(request.message);
    add_protocol_headers(sent, peer, request.method, request.name);
    for (auto& header : headers) sent.headers.push_back(std::move(header));
    sign(sent);
    Listening listening(*this, request.id, peer);
    sent.reader = &listening;
    Posted posted;
    auto sending = options_.sender.send(std::move(sent), options_.deadline);
    posted.result = co_await std::move(sending);
    auto resuming = resume(posted, listening, peer);
    co_await std::move(resuming);
    const auto* response = std::get_if<HttpResponse>(&posted.result);
    if (response != nullptr && !response->truncated && !listening.ended()) {
        // A document; or a stream that was compressed and could not be read as it came.
        auto body = response->body + (is_event_stream(*response) ? "\n\n" : "");
        if (is_event_stream(*response)) {
            for (const auto& event : listening.events().take(body)) {
                static_cast<void>(listening.inbox().take(parse_rpc(event.data)));
            }
        } else {
            static_cast<void>(listening.inbox().take(parse_rpc(body)));
        }
    }
    posted.answer = listening.inbox().answer();
    if (listening.inbox().flooded()) posted.problem = "the server sent messages without end";
    if (listening.events().too_long()) posted.problem = "a message is longer than limits.response";
    co_return posted;
}

// A stream that ended without the answer, on a server that numbers its events, is asked on: a GET
// has no effect, and the call itself is never made again. A modern server has no such thing.
asio::awaitable<void> McpChannel::resume(
    Posted& posted, Listening& listening, const McpPeer& peer
) {
    auto& events = listening.events();
    for (int round = 0; round < kMostResumes; ++round) {
        const auto* response = std::get_if<HttpResponse>(&posted.result);
        const auto* failure = std::get_if<HttpFailure>(&posted.result);
        const bool ended = response != nullptr && is_good(*response) &&
                           is_event_stream(*response) && !response->truncated;
        const bool broke = failure != nullptr && failure->sent && failure->cause == Cause::reset;
        if (peer.modern || listening.ended() || events.last_id().empty()) co_return;
        if (!ended && !broke) co_return;
        const auto executor = co_await asio::this_coro::executor;
        asio::steady_timer timer(executor);
        const auto asked = events.retry() ? nanoseconds(*events.retry()) : kResumePause;
        const auto pause = std::clamp(asked, kShortestPause, kLongestPause);
        timer.expires_after(std::clamp(options_.deadline.left(), nanoseconds{0}, pause));
        auto waiting = timer.async_wait(asio::as_tuple(asio::use_awaitable));
        co_await std::move(waiting);
        auto asking = is_cancelled();
        if (co_await std::move(asking)) co_return;
        if (options_.deadline.passed()) {
            posted.result = timed_out();
            co_return;
        }
        auto request = options_.base;
        request.method = "GET";
        add_protocol_headers(request, peer, {}, {});
        request.headers.emplace_back("Last-Event-ID", events.last_id());
        sign(request);
        request.reader = &listening;
        events.begin_again();
        auto sending = options_.sender.send(std::move(request), options_.deadline);
        auto next = co_await std::move(sending);
        const auto* again = std::get_if<HttpResponse>(&next);
        // Where it cannot be asked, how the call's own stream ended stands.
        if (again != nullptr && !(is_good(*again) && is_event_stream(*again))) co_return;
        if (again == nullptr && !std::get<HttpFailure>(next).sent) continue;
        posted.result = std::move(next);
    }
}

}  // namespace tools
