#include "daemon/mcp/message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/text.hpp"
#include "daemon/version.hpp"
#include "outbox/utf8.hpp"

namespace outboxd::mcp {
namespace {

using outbox::Json;

constexpr std::string_view kRevisionKey = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
constexpr std::string_view kServerKey = "io.modelcontextprotocol/serverInfo";
constexpr int kBadRequest = 400;
// Nobody quotes more of what a stranger sent.
constexpr std::size_t kMaxQuoted = 100;

Json envelope() {
    Json out;
    out.set("jsonrpc", "2.0");
    return out;
}

// A text or an integer: MCP has neither null nor fractions for ids.
bool is_id(const Json& value) {
    if (value.as_string() != nullptr) return true;
    const auto* number = value.as_number();
    return number != nullptr && number->text.find_first_of(".eE") == std::string::npos;
}

Message refused(Message message, int code, std::string why, int http_status = kBadRequest) {
    message.kind = Message::Kind::fault;
    message.fault = {code, std::move(why), {}, http_status};
    return message;
}

// What a modern request owes; empty when nothing is missing.
std::optional<Fault> check_revision(Message& message) {
    const auto* revision = message.meta(kRevisionKey);
    if (revision == nullptr) return std::nullopt;
    if (revision->as_string() == nullptr) {
        return Fault{
            kInvalidParams,
            fmt::format("_meta[\"{}\"] must be a text", kRevisionKey),
            {},
            kBadRequest
        };
    }
    message.revision = *revision->as_string();
    if (is_legacy(message.revision)) return std::nullopt;
    if (message.revision != kModernRevision) return unsupported_revision(message.revision);
    message.modern = true;
    const auto* capabilities = message.meta(kCapabilitiesKey);
    if (capabilities != nullptr && capabilities->as_object() != nullptr) return std::nullopt;
    return Fault{
        kInvalidParams,
        fmt::format(
            "_meta[\"{}\"] is missing: a request of revision {} says what its client can do",
            kCapabilitiesKey,
            kModernRevision
        ),
        {},
        kBadRequest
    };
}

// Half a character (a text that was cut inside an emoji is one) is no reason to leave a client
// without its answer: all else can be read, and so can the id. Null: it cannot.
Json id_of_broken(std::string_view text) {
    const auto parsed = outbox::parse_foreign_json(text);
    if (!parsed.value || parsed.value->as_object() == nullptr) return {};
    const auto* id = parsed.value->find("id");
    if (id == nullptr || !is_id(*id)) return {};
    const auto* name = id->as_string();
    const bool repaired = name != nullptr && name->find(outbox::kReplacement) != std::string::npos;
    return repaired ? Json() : *id;
}

Message read_params(Message message, const Json* params) {
    if (params != nullptr) {
        if (params->as_object() == nullptr) {
            return refused(std::move(message), kInvalidParams, "params must be an object");
        }
        message.params = *params;
    }
    const auto* meta = message.params.find("_meta");
    if (meta != nullptr && meta->as_object() == nullptr) {
        return refused(std::move(message), kInvalidParams, "params._meta must be an object");
    }
    if (message.kind != Message::Kind::request) return message;
    if (auto fault = check_revision(message)) {
        message.kind = Message::Kind::fault;
        message.fault = std::move(*fault);
        return message;
    }
    if (message.method == "server/discover" && !message.modern) {
        return refused(
            std::move(message),
            kInvalidParams,
            fmt::format("server/discover needs _meta[\"{}\"]: {}", kRevisionKey, kModernRevision)
        );
    }
    return message;
}

}  // namespace

const std::vector<std::string_view>& revisions() {
    static const std::vector<std::string_view> all{kModernRevision, "2025-11-25", "2025-06-18"};
    return all;
}

bool is_legacy(std::string_view revision) {
    const auto& all = revisions();
    return revision != kModernRevision && std::find(all.begin(), all.end(), revision) != all.end();
}

std::string_view negotiated(std::string_view wanted) {
    const auto& all = revisions();
    const auto found = std::find(all.begin() + 1, all.end(), wanted);
    return found == all.end() ? all[1] : *found;
}

Fault unsupported_revision(std::string_view requested) {
    Json::Array supported;
    for (const auto revision : revisions()) supported.emplace_back(revision);
    Json data;
    data.set("supported", std::move(supported));
    data.set("requested", std::string(outbox::utf8_head(requested, kMaxQuoted)));
    return {kUnsupportedRevision, "Unsupported protocol version", std::move(data), kBadRequest};
}

const Json* Message::meta(std::string_view name) const {
    const auto* meta = params.find("_meta");
    const auto* found = meta == nullptr ? nullptr : meta->find(name);
    return found == nullptr || found->is_null() ? nullptr : found;
}

Message read_message(std::string_view text) {
    const auto parsed = outbox::parse_json(text);
    if (!parsed.value) {
        Message unread;
        unread.id = id_of_broken(text);
        return refused(
            std::move(unread),
            kParseError,
            fmt::format("This is no JSON: {} at byte {}", printable(parsed.error), parsed.offset)
        );
    }
    const auto& value = *parsed.value;
    if (value.as_array() != nullptr) {
        return refused(
            {}, kInvalidRequest, "Batches are not part of MCP: send one message at a time"
        );
    }
    Message message;
    const auto* id = value.find("id");
    if (id != nullptr && is_id(*id)) message.id = *id;
    const auto* version = value.find("jsonrpc");
    if (version == nullptr || !version->equals(Json("2.0"))) {
        return refused(
            std::move(message),
            kInvalidRequest,
            "This is no JSON-RPC 2.0: \"jsonrpc\" must be \"2.0\""
        );
    }
    const auto* method = value.find("method");
    if (method == nullptr && (value.find("result") != nullptr || value.find("error") != nullptr)) {
        message.kind = Message::Kind::response;
        return message;
    }
    if (method == nullptr || method->as_string() == nullptr) {
        return refused(std::move(message), kInvalidRequest, "\"method\" must be a text");
    }
    if (id != nullptr && !is_id(*id)) {
        return refused(std::move(message), kInvalidRequest, "\"id\" must be a text or an integer");
    }
    message.method = *method->as_string();
    message.kind = id == nullptr ? Message::Kind::notification : Message::Kind::request;
    return read_params(std::move(message), value.find("params"));
}

std::string result_text(const Message& request, Json result) {
    if (request.modern) {
        result.set("resultType", "complete");
        Json server;
        server.set("name", "outboxd");
        server.set("version", kVersion);
        Json meta;
        meta.set(std::string(kServerKey), std::move(server));
        result.set("_meta", std::move(meta));
    }
    auto out = envelope();
    out.set("id", request.id);
    out.set("result", std::move(result));
    return outbox::to_text(out);
}

std::string fault_text(const Json& id, const Fault& fault) {
    Json error;
    error.set("code", fault.code);
    error.set("message", fault.message);
    if (!fault.data.is_null()) error.set("data", fault.data);
    auto out = envelope();
    // MCP leaves out what JSON-RPC writes as null: the id of a message that could not be read.
    if (!id.is_null()) out.set("id", id);
    out.set("error", std::move(error));
    return outbox::to_text(out);
}

std::string progress_text(const Json& token, int progress, int total, std::string_view message) {
    Json params;
    params.set("progressToken", token);
    params.set("progress", progress);
    params.set("total", total);
    params.set("message", message);
    auto out = envelope();
    out.set("method", "notifications/progress");
    out.set("params", std::move(params));
    return outbox::to_text(out);
}

}  // namespace outboxd::mcp
