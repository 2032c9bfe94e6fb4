#include "tools/mcp_http.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "tools/http_tool.hpp"
#include "tools/mcp_http_end.hpp"
#include "tools/mcp_task.hpp"
#include "tools/running_command.hpp"

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

bool same_mirrors(const std::vector<McpMirror>& a, const std::vector<McpMirror>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return x.header == y.header && x.path == y.path;
    });
}

// One call, what has to go before it, and the task that it may go on as.
class Conversation final : public McpTaskLine {
 public:
    Conversation(
        McpChannel channel, McpKnowledge& knowledge, const McpCall& call, Deadline deadline
    )
        : channel_(channel), knowledge_(knowledge), call_(call), deadline_(deadline) {}

    asio::awaitable<McpEnd> run();
    asio::awaitable<Asked> ask(std::string_view method, std::string task) override;
    asio::awaitable<bool> wait(std::chrono::nanoseconds longest) override;

 private:
    // Leaves knowledge_.peer, or says why not.
    asio::awaitable<std::optional<McpEnd>> open();
    asio::awaitable<std::optional<McpEnd>> initialize(std::string version);
    // After an answer that says: not executed, because of something that was kept from earlier.
    // True: it is gone or corrected.
    asio::awaitable<bool> correct(const Posted& posted, const McpPeer& peer, bool kept);
    asio::awaitable<bool> learn_mirrors(const McpPeer& peer);
    // Whether the tool wants to be called as a task, or why that cannot be known now.
    asio::awaitable<std::optional<McpEnd>> learn_as_task(const McpPeer& peer);
    // Pages of tools/list, until one of them is taken; what came last.
    using Take = std::function<bool(const outbox::Json& page)>;
    asio::awaitable<Posted> list_tools(const McpPeer& peer, const Take& take);

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
    McpPeer peer{
        .version = greeting.version, .modern = false, .session = {}, .tasks = greeting.tasks
    };
    knowledge_.as_task.clear();
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

asio::awaitable<Posted> Conversation::list_tools(const McpPeer& peer, const Take& take) {
    std::string cursor;
    Posted posted;
    for (int page = 0; page < kMostToolPages; ++page) {
        const auto id = knowledge_.next_id();
        auto posting =
            channel_.post({id, list_tools_message(id, cursor, peer), "tools/list", {}}, peer);
        posted = co_await std::move(posting);
        if (!posted.answer || posted.answer->kind != RpcMessage::Kind::result) co_return posted;
        const auto& body = posted.answer->body;
        if (take(body)) co_return posted;
        const auto* next = body.find("nextCursor");
        const auto* text = next == nullptr ? nullptr : next->as_string();
        if (text == nullptr || text->empty() || *text == cursor) co_return posted;
        cursor = *text;
    }
    co_return posted;
}

// The headers that the tool's schema wants; true: others than those that were sent.
asio::awaitable<bool> Conversation::learn_mirrors(const McpPeer& peer) {
    bool changed = false;
    const Take take = [&](const outbox::Json& page) {
        auto mirrors = read_mirrors(page, call_.tool);
        if (!mirrors) return false;
        auto& known = knowledge_.mirrors[call_.tool];
        changed = !same_mirrors(known, *mirrors);
        known = std::move(*mirrors);
        return true;
    };
    auto listing = list_tools(peer, take);
    const auto listed = co_await std::move(listing);
    static_cast<void>(listed);
    co_return changed;
}

asio::awaitable<std::optional<McpEnd>> Conversation::learn_as_task(const McpPeer& peer) {
    bool wanted = false;
    const Take take = [&](const outbox::Json& page) {
        const auto read = read_wants_task(page, call_.tool);
        wanted = read.value_or(false);
        return read.has_value();
    };
    auto listing = list_tools(peer, take);
    auto listed = co_await std::move(listing);
    // A server that cannot list its tools has said nothing about tasks either: a plain call.
    if (!listed.answer) {
        const bool kept = true;
        auto correcting = correct(listed, peer, kept);
        const bool stale = co_await std::move(correcting);
        auto end = unopened(listed, "tools/list");
        end.stale = end.stale || stale;
        co_return end;
    }
    knowledge_.as_task[call_.tool] = wanted;
    co_return std::nullopt;
}

asio::awaitable<bool> Conversation::wait(std::chrono::nanoseconds longest) {
    const auto executor = co_await asio::this_coro::executor;
    asio::steady_timer timer(executor);
    timer.expires_after(longest);
    auto waiting = timer.async_wait(asio::as_tuple(asio::use_awaitable));
    co_await std::move(waiting);
    auto cancelling = is_cancelled();
    co_return !co_await std::move(cancelling);
}

// A session that ended, or a token that did, meanwhile: once more under a new one.
asio::awaitable<McpTaskLine::Asked> Conversation::ask(std::string_view method, std::string task) {
    Asked asked;
    for (int round = 0; round < 2; ++round) {
        if (!knowledge_.peer) {
            auto opening = open();
            auto failed = co_await std::move(opening);
            if (failed) {
                asked.failure = std::move(*failed);
                asked.signal = asked.failure.signal;
                co_return asked;
            }
        }
        const McpPeer peer = *knowledge_.peer;
        const auto id = knowledge_.next_id();
        auto posting =
            channel_.post({id, task_message(id, method, task, peer), method, task}, peer);
        auto posted = co_await std::move(posting);
        auto correcting = correct(posted, peer, true);
        const bool stale = co_await std::move(correcting);
        asked.signal = lane_signal(posted.result);
        asked.answer = posted.answer;
        if (auto* response = std::get_if<HttpResponse>(&posted.result)) {
            asked.status = response->status;
            asked.headers = response->headers;
        }
        if (!posted.answer) asked.failure = end_of(std::move(posted));
        if (!stale) break;
    }
    co_return asked;
}

asio::awaitable<McpEnd> Conversation::run() {
    const bool kept = knowledge_.peer.has_value();
    if (!kept) {
        auto opening = open();
        auto failed = co_await std::move(opening);
        if (failed) co_return std::move(*failed);
    }
    if (call_.task) {
        auto looking = look_at_task(*this, *call_.task);
        co_return co_await std::move(looking);
    }
    const McpPeer peer = *knowledge_.peer;
    if (peer.tasks && !knowledge_.as_task.contains(call_.tool)) {
        auto learning = learn_as_task(peer);
        auto failed = co_await std::move(learning);
        if (failed) co_return std::move(*failed);
    }
    const bool as_task = peer.tasks && knowledge_.as_task[call_.tool];
    McpChannel::Headers headers;
    if (peer.modern) {
        for (const auto& mirror : knowledge_.mirrors[call_.tool]) {
            auto value = mirrored(mirror, call_.arguments);
            if (value) headers.emplace_back(mirror.header, std::move(*value));
        }
    }
    const auto id = knowledge_.next_id();
    auto posting = channel_.post(
        {id, call_message(id, call_, peer, as_task), "tools/call", call_.tool},
        peer,
        std::move(headers)
    );
    auto posted = co_await std::move(posting);
    if (posted.answer) {
        if (auto task = read_created_task(*posted.answer)) {
            const auto signal = lane_signal(posted.result);
            auto following = follow_task(*this, std::move(*task), call_.keep, deadline_);
            auto end = co_await std::move(following);
            if (!end.signal) end.signal = signal;
            co_return end;
        }
    }
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
