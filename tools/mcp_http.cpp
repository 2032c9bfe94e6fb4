#include "tools/mcp_http.hpp"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "tools/http_tool.hpp"

namespace tools {
namespace {

using outbox::Cause;
using outbox::Deadline;
using Next = McpGreeting::Next;
using Posted = McpChannel::Posted;

constexpr int kMostToolPages = 50;

McpPeer modern_peer() {
    return {.version = std::string(kModernMcp), .modern = true, .session = {}};
}

// A session's id goes into a header.
bool is_session_id(std::string_view id) {
    constexpr std::size_t kLongest = 1024;
    return !id.empty() && id.size() <= kLongest &&
           std::all_of(id.begin(), id.end(), [](char c) { return c >= 0x21 && c <= 0x7e; });
}

bool is_stream(const HttpResponse& response) {
    return response.header("Content-Type").value_or("").starts_with("text/event-stream");
}

// What went before the call failed: the call was not sent.
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

// How the call itself ended.
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

bool same_mirrors(const std::vector<McpMirror>& a, const std::vector<McpMirror>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return x.header == y.header && x.path == y.path;
    });
}

// One call, and what has to go before it.
class Conversation {
 public:
    Conversation(
        McpChannel channel, McpKnowledge& knowledge, const McpCall& call, Deadline deadline
    )
        : channel_(channel), knowledge_(knowledge), call_(call), deadline_(deadline) {}

    asio::awaitable<McpEnd> run();

 private:
    // Leaves knowledge_.peer, or says why not.
    asio::awaitable<std::optional<McpEnd>> open();
    asio::awaitable<std::optional<McpEnd>> initialize(std::string version);
    // After an answer that says: not executed, because of something that was kept from earlier.
    // True: it is gone or corrected.
    asio::awaitable<bool> correct(const Posted& posted, const McpPeer& peer, bool kept);
    asio::awaitable<bool> learn_mirrors(const McpPeer& peer);

    McpChannel channel_;
    McpKnowledge& knowledge_;
    const McpCall& call_;
    Deadline deadline_;
};

asio::awaitable<std::optional<McpEnd>> Conversation::open() {
    auto taking = Turn::take(knowledge_.opening, deadline_);
    const auto turn = co_await std::move(taking);
    if (!turn) {
        co_return not_called(
            "not_sent_deadline", "The time for this attempt ended before the server was asked."
        );
    }
    if (knowledge_.peer) co_return std::nullopt;  // somebody else asked meanwhile
    const auto id = knowledge_.next_id();
    auto posting = channel_.post({id, discover_message(id), "server/discover", {}}, modern_peer());
    const auto posted = co_await std::move(posting);
    McpGreeting greeting{Next::initialize, std::string(legacy_mcp().front()), {}};
    if (posted.answer) {
        greeting = read_discover(*posted.answer);
    } else {
        // A server that does not know server/discover refuses it in many ways; these statuses are
        // about something else.
        const auto* response = std::get_if<HttpResponse>(&posted.result);
        const int status = response == nullptr ? 0 : response->status;
        const bool other = status == 401 || status == 403 || status == 407 || status == 408 ||
                           status == 429 || status > 501 || (status >= 300 && status < 400);
        if (response == nullptr || other) co_return unopened(posted, "server/discover");
    }
    if (greeting.next == Next::hopeless) co_return hopeless(posted, greeting);
    if (greeting.next == Next::ready) {
        knowledge_.peer = modern_peer();
        co_return std::nullopt;
    }
    auto initializing = initialize(std::move(greeting.version));
    co_return co_await std::move(initializing);
}

asio::awaitable<std::optional<McpEnd>> Conversation::initialize(std::string version) {
    const McpPeer nobody;
    const auto id = knowledge_.next_id();
    auto posting = channel_.post({id, initialize_message(id, version), "initialize", {}}, nobody);
    const auto posted = co_await std::move(posting);
    if (!posted.answer) co_return unopened(posted, "initialize");
    const auto greeting = read_initialize(*posted.answer);
    if (greeting.next != Next::ready) co_return hopeless(posted, greeting);
    McpPeer peer{.version = greeting.version, .modern = false, .session = {}};
    if (const auto* response = std::get_if<HttpResponse>(&posted.result)) {
        const auto session = response->header("Mcp-Session-Id");
        if (session && !is_session_id(*session)) {
            co_return not_called("not_sent_mcp", "the server gave a session id that is none");
        }
        peer.session = session.value_or("");
    }
    auto noting = channel_.send(initialized_message(), peer, deadline_);
    Posted noted;
    noted.result = co_await std::move(noting);
    const auto* response = std::get_if<HttpResponse>(&noted.result);
    if (response == nullptr || response->status >= 300) {
        co_return unopened(noted, "notifications/initialized");
    }
    knowledge_.peer = std::move(peer);
    co_return std::nullopt;
}

asio::awaitable<bool> Conversation::correct(const Posted& posted, const McpPeer& peer, bool kept) {
    constexpr int kHeaderMismatch = -32020;
    constexpr int kUnsupportedVersion = -32022;
    const auto* response = std::get_if<HttpResponse>(&posted.result);
    if (response == nullptr) co_return false;
    if (response->token_was_stale) co_return true;
    const auto code = posted.answer ? posted.answer->code : std::nullopt;
    if (code == kHeaderMismatch && peer.modern) {
        auto learning = learn_mirrors(peer);
        co_return co_await std::move(learning);
    }
    // A session that ended, or a server that an older or a newer one replaced: there is no common
    // form for saying so, but all of them refuse the message as a whole.
    const int status = response->status;
    const bool gone =
        code == kUnsupportedVersion || status == 400 || status == 404 || status == 405;
    if (!gone) co_return false;
    const auto& known = knowledge_.peer;
    const bool same = known && known->session == peer.session && known->modern == peer.modern;
    if (same) knowledge_.peer.reset();
    co_return kept;
}

// The headers that the tool's schema wants; true: others than those that were sent.
asio::awaitable<bool> Conversation::learn_mirrors(const McpPeer& peer) {
    std::string cursor;
    for (int page = 0; page < kMostToolPages; ++page) {
        const auto id = knowledge_.next_id();
        auto posting =
            channel_.post({id, list_tools_message(id, cursor, peer), "tools/list", {}}, peer);
        const auto posted = co_await std::move(posting);
        if (!posted.answer || posted.answer->kind != RpcMessage::Kind::result) co_return false;
        const auto& body = posted.answer->body;
        if (auto mirrors = read_mirrors(body, call_.tool)) {
            auto& known = knowledge_.mirrors[call_.tool];
            const bool changed = !same_mirrors(known, *mirrors);
            known = std::move(*mirrors);
            co_return changed;
        }
        const auto* next = body.find("nextCursor");
        const auto* text = next == nullptr ? nullptr : next->as_string();
        if (text == nullptr || text->empty() || *text == cursor) co_return false;
        cursor = *text;
    }
    co_return false;
}

asio::awaitable<McpEnd> Conversation::run() {
    const bool kept = knowledge_.peer.has_value();
    if (!kept) {
        auto opening = open();
        auto failed = co_await std::move(opening);
        if (failed) co_return std::move(*failed);
    }
    const McpPeer peer = *knowledge_.peer;
    McpChannel::Headers headers;
    if (peer.modern) {
        for (const auto& mirror : knowledge_.mirrors[call_.tool]) {
            auto value = mirrored(mirror, call_.arguments);
            if (value) headers.emplace_back(mirror.header, std::move(*value));
        }
    }
    const auto id = knowledge_.next_id();
    auto posting = channel_.post(
        {id, call_message(id, call_, peer), "tools/call", call_.tool}, peer, std::move(headers)
    );
    auto posted = co_await std::move(posting);
    auto correcting = correct(posted, peer, kept);
    const bool stale = co_await std::move(correcting);
    const auto signal = lane_signal(posted.result);
    auto end = end_of(std::move(posted));
    end.stale = stale;
    end.signal = signal;
    co_return end;
}

}  // namespace

// A cancellation is answered with what is known about the first byte, not with an exception.
asio::awaitable<McpEnd> McpHttpServer::call(McpCall call, const Scope& scope, Deadline deadline) {
    const bool throwing = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    Conversation conversation(
        McpChannel(
            {.sender = *sender_,
             .credential = credential_,
             .base = std::get<HttpRequest>(call.to),
             .scope = scope,
             .deadline = deadline,
             .max_event_bytes = max_event_bytes_}
        ),
        *knowledge_,
        call,
        deadline
    );
    auto running = conversation.run();
    McpEnd end;
    std::exception_ptr error;
    try {
        end = co_await std::move(running);
    } catch (...) {
        error = std::current_exception();
    }
    co_await asio::this_coro::throw_if_cancelled(throwing);
    if (error) std::rethrow_exception(error);
    co_return end;
}

HttpRequest shown_request(
    const McpCall& call, const RequestCredential& credential, const Scope& scope
) {
    auto request = std::get<HttpRequest>(call.to);
    request.body = call_message(1, call, modern_peer());
    add_protocol_headers(request, modern_peer(), "tools/call", call.tool);
    credential.put_on(request, scope, std::chrono::system_clock::now());
    return request;
}

}  // namespace tools
