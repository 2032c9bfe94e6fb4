#include "daemon/mcp/http.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/encoding.hpp"

namespace outboxd::mcp {
namespace {

constexpr std::string_view kRevisionHeader = "MCP-Protocol-Version";
constexpr int kBadRequest = 400;

Fault mismatch(std::string message) {
    return {kHeaderMismatch, std::move(message), {}, kBadRequest};
}

// Plain, or =?base64?…?= where a header could not carry it; empty: broken.
std::optional<std::string> decoded(const std::string& value) {
    constexpr std::string_view kOpen = "=?base64?";
    constexpr std::string_view kClose = "?=";
    const bool marked = value.size() >= kOpen.size() + kClose.size() && value.starts_with(kOpen) &&
                        value.ends_with(kClose);
    if (!marked) return value;
    return tools::base64_decode(
        std::string_view(value).substr(kOpen.size(), value.size() - kOpen.size() - kClose.size())
    );
}

std::optional<Fault> check_mirror(
    const ServerRequest& request, std::string_view header, const std::string& expected
) {
    const auto given = request.header(header);
    const auto value = given ? decoded(*given) : std::nullopt;
    if (value == expected) return std::nullopt;
    return mismatch(
        given ? fmt::format("Header mismatch: {} does not say what the body says", header)
              : fmt::format("Header mismatch: {} is missing, or there twice", header)
    );
}

std::optional<Fault> check_modern(const ServerRequest& request, const Message& message) {
    if (auto fault = check_mirror(request, kRevisionHeader, message.revision)) return fault;
    if (auto fault = check_mirror(request, "Mcp-Method", message.method)) return fault;
    const auto* name = message.params.find("name");
    if (message.method != "tools/call" || name == nullptr || name->as_string() == nullptr) {
        return std::nullopt;
    }
    return check_mirror(request, "Mcp-Name", *name->as_string());
}

// One of the media types, or a range that holds it; a request that says nothing takes anything.
bool accepts(const ServerRequest& request, std::string_view type) {
    bool said = false;
    for (const auto& [name, value] : request.headers) {
        std::string lower(name);
        std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        if (lower != "accept") continue;
        said = true;
        const auto family = std::string(type.substr(0, type.find('/'))) + "/*";
        for (const auto& wanted : {std::string(type), family, std::string("*/*")}) {
            if (value.find(wanted) != std::string::npos) return true;
        }
    }
    return !said;
}

ServerResponse to_response(const Reply& reply) {
    ServerResponse response;
    response.status = reply.http_status;
    response.body = reply.text;
    return response;
}

bool wants_progress(const Message& message) {
    return message.kind == Message::Kind::request && message.method == "tools/call" &&
           message.meta("progressToken") != nullptr;
}

}  // namespace

std::optional<Fault> check_headers(const ServerRequest& request, const Message& message) {
    if (message.kind == Message::Kind::fault) return std::nullopt;
    if (message.modern) return check_modern(request, message);
    if (message.method == "initialize") return std::nullopt;
    const auto revision = request.header(kRevisionHeader);
    if (!revision || is_legacy(*revision)) return std::nullopt;
    // Of 2025-03-26 nothing is different that this server would do.
    if (*revision == "2025-03-26") return std::nullopt;
    if (*revision != kModernRevision) return unsupported_revision(*revision);
    if (message.kind != Message::Kind::request) return std::nullopt;
    return Fault{
        kInvalidParams,
        fmt::format(
            "_meta[\"io.modelcontextprotocol/protocolVersion\"] is missing, which revision {} "
            "requires",
            kModernRevision
        ),
        {},
        kBadRequest
    };
}

class HttpFace::Waiting {
 public:
    Waiting(HttpFace& face, Exchange& exchange) : face_(face), exchange_(exchange) {
        face_.waiting_.insert(&exchange_);
        exchange_.stopped = face_.stopping_;
    }
    ~Waiting() { face_.waiting_.erase(&exchange_); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

 private:
    HttpFace& face_;
    Exchange& exchange_;
};

void HttpFace::stop() {
    stopping_ = true;
    for (auto* exchange : waiting_) exchange->stop_waiting();
}

RunSource HttpFace::run_of(const ServerRequest& request) const {
    RunSource run;
    run.hint = fmt::format("_meta[\"{}\"] of the call", kRunKey);
    if (!run_header_) return run;
    run.run_id = request.header(*run_header_);
    run.hint += fmt::format(", or the header {}", *run_header_);
    return run;
}

asio::awaitable<ServerResponse> HttpFace::post(ServerRequest request) {
    if (!face_.offers_something()) {
        co_return problem(
            404, "Not found", "No tool is offered: give it expose: true in the configuration."
        );
    }
    const bool events = accepts(request, "text/event-stream");
    if (!accepts(request, "application/json")) {
        co_return problem(406, "Not acceptable", "The Accept header must list application/json.");
    }
    auto message = read_message(request.body);
    request.body.clear();
    if (auto fault = check_headers(request, message)) {
        message.kind = Message::Kind::fault;
        message.fault = std::move(*fault);
    }
    auto run = run_of(request);
    if (wants_progress(message) && events && request.header("Accept")) {
        ServerResponse response;
        response.content_type = "text/event-stream";
        response.headers.emplace_back("X-Accel-Buffering", "no");
        response.stream = [this, message = std::move(message), run = std::move(run)](
                              ResponseStream& out
                          ) { return stream(message, run, out); };
        co_return response;
    }
    Exchange exchange(executor_);
    const Waiting waiting(*this, exchange);
    exchange.run = std::move(run);
    auto handling = face_.handle(std::move(message), exchange);
    const auto reply = co_await std::move(handling);
    co_return to_response(reply);
}

// The client is told how it goes; one that has gone is not waited for, and what it asked for goes
// on.
asio::awaitable<void> HttpFace::stream(Message message, RunSource run, ResponseStream& out) {
    Exchange exchange(executor_);
    const Waiting waiting(*this, exchange);
    exchange.run = std::move(run);
    exchange.notify = [&out](std::string text) { return send(out, std::move(text)); };
    auto handling = face_.handle(std::move(message), exchange);
    const auto reply = co_await std::move(handling);
    auto sending = send(out, reply.text);
    co_await std::move(sending);
}

asio::awaitable<bool> HttpFace::send(ResponseStream& out, std::string text) {
    auto writing = out.write("event: message\ndata: " + text + "\n\n");
    co_return co_await std::move(writing);
}

}  // namespace outboxd::mcp
