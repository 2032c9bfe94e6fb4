#include "tools/mcp_protocol.hpp"

#include <algorithm>
#include <utility>

#include "tools/answer.hpp"
#include "tools/encoding.hpp"

namespace tools {
namespace {

using outbox::Json;
using Next = McpGreeting::Next;

constexpr std::string_view kPrefix = "io.modelcontextprotocol/";
constexpr std::string_view kWithTasks = "2025-11-25";
constexpr int kHeaderMismatch = -32020;
constexpr int kMissingCapability = -32021;
constexpr int kUnsupportedVersion = -32022;
constexpr int kMethodNotFound = -32601;
// A long run that reports its progress ten times a second for hours sends fewer.
constexpr std::size_t kMostMessages = 200'000;
// A server that asks without end is not answered without end.
constexpr std::size_t kMostReplies = 100;

Json client() {
    Json out;
    out.set("name", Json("outboxd"));
    out.set("version", Json("1"));
    return out;
}

std::string own(std::string_view name) {
    return std::string(kPrefix) + std::string(name);
}

// _meta of a request: a modern one says by itself who asks. We offer the server nothing (no
// sampling, no elicitation, no roots) but to follow a task where a call is answered with one.
void add_meta(Json& params, Json meta, bool modern) {
    if (modern) {
        meta.set(own("protocolVersion"), Json(kModernMcp));
        meta.set(own("clientInfo"), client());
        Json extensions;
        extensions.set(own("tasks"), Json(Json::Object{}));
        Json capabilities;
        capabilities.set("extensions", std::move(extensions));
        meta.set(own("clientCapabilities"), std::move(capabilities));
    }
    const auto* members = meta.as_object();
    if (members != nullptr && !members->empty()) params.set("_meta", std::move(meta));
}

const std::string* string_of(const Json* value) {
    return value == nullptr ? nullptr : value->as_string();
}

bool names(const Json* list, std::string_view version) {
    const auto* items = list == nullptr ? nullptr : list->as_array();
    return items != nullptr && std::any_of(items->begin(), items->end(), [&](const Json& item) {
               return item.equals(Json(version));
           });
}

// The best of what the server speaks, as far as we speak it.
McpGreeting choose(const Json* versions) {
    if (names(versions, kModernMcp)) return {Next::ready, std::string(kModernMcp), {}};
    for (const auto version : legacy_mcp()) {
        if (names(versions, version)) return {Next::initialize, std::string(version), {}};
    }
    return {
        Next::hopeless,
        {},
        "no protocol revision in common; the server speaks " +
            (versions == nullptr ? "none" : outbox::to_text(*versions))
    };
}

std::string said(const RpcMessage& answer) {
    const auto* message = string_of(answer.body.find("message"));
    const auto code = answer.code ? std::to_string(*answer.code) : "";
    return "error " + code + (message == nullptr ? "" : ": " + *message);
}

bool is_token(std::string_view text) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kOthers.find(c) != std::string_view::npos;
    });
}

// Along properties alone; false: an annotation that is not allowed.
bool collect(const Json& schema, std::vector<std::string>& path, std::vector<McpMirror>& out) {
    constexpr std::size_t kDeepest = 16;
    const auto* properties = schema.find("properties");
    const auto* members = properties == nullptr ? nullptr : properties->as_object();
    if (members == nullptr || path.size() >= kDeepest) return true;
    for (const auto& [name, property] : *members) {
        path.push_back(name);
        if (const auto* header = property.find("x-mcp-header")) {
            const auto* text = header->as_string();
            const auto* type = string_of(property.find("type"));
            const bool primitive =
                type != nullptr && (*type == "string" || *type == "integer" || *type == "boolean");
            if (text == nullptr || !is_token(*text) || !primitive) return false;
            const bool twice = std::any_of(out.begin(), out.end(), [&](const McpMirror& other) {
                return same_header_name(other.header, "Mcp-Param-" + *text);
            });
            if (twice) return false;
            out.push_back({"Mcp-Param-" + *text, path});
        }
        if (!collect(property, path, out)) return false;
        path.pop_back();
    }
    return true;
}

const Json* find_tool(const Json& page, const std::string& tool) {
    const auto* listed = page.find("tools");
    const auto* tools = listed == nullptr ? nullptr : listed->as_array();
    if (tools == nullptr) return nullptr;
    for (const auto& one : *tools) {
        const auto* name = string_of(one.find("name"));
        if (name != nullptr && *name == tool) return &one;
    }
    return nullptr;
}

}  // namespace

const std::vector<std::string_view>& legacy_mcp() {
    static const std::vector<std::string_view> versions{
        "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"
    };
    return versions;
}

std::string discover_message(RpcId id) {
    Json params{Json::Object{}};
    add_meta(params, Json(Json::Object{}), true);
    return rpc_request(id, "server/discover", std::move(params));
}

std::string initialize_message(RpcId id, std::string_view version) {
    Json params;
    params.set("protocolVersion", Json(version));
    params.set("capabilities", Json(Json::Object{}));
    params.set("clientInfo", client());
    return rpc_request(id, "initialize", std::move(params));
}

std::string initialized_message() {
    return rpc_notification("notifications/initialized");
}

std::string call_message(RpcId id, const McpCall& call, const McpPeer& peer, bool as_task) {
    // How long the server shall remember how it ended: as long as is asked, unless the file says
    // otherwise (reconcile.give_up_after).
    constexpr std::int64_t kRemembered = 24LL * 60 * 60 * 1000;  // ms
    Json params;
    params.set("name", Json(call.tool));
    params.set("arguments", call.arguments);
    if (as_task) {
        Json task;
        task.set("ttl", Json(kRemembered));
        params.set("task", std::move(task));
    }
    add_meta(params, call.meta, peer.modern);
    return rpc_request(id, "tools/call", std::move(params));
}

std::string task_message(
    RpcId id, std::string_view method, const std::string& task, const McpPeer& peer
) {
    Json params;
    params.set("taskId", Json(task));
    add_meta(params, Json(Json::Object{}), peer.modern);
    return rpc_request(id, method, std::move(params));
}

std::string list_tools_message(RpcId id, const std::string& cursor, const McpPeer& peer) {
    Json params{Json::Object{}};
    if (!cursor.empty()) params.set("cursor", Json(cursor));
    add_meta(params, Json(Json::Object{}), peer.modern);
    return rpc_request(id, "tools/list", std::move(params));
}

bool is_modern_error(const RpcMessage& answer) {
    return answer.kind == RpcMessage::Kind::error &&
           (answer.code == kHeaderMismatch || answer.code == kMissingCapability ||
            answer.code == kUnsupportedVersion);
}

McpGreeting read_discover(const RpcMessage& answer) {
    if (answer.kind == RpcMessage::Kind::result) {
        // A modern server's result names its versions; what does not was no DiscoverResult.
        const auto* versions = answer.body.find("supportedVersions");
        if (versions != nullptr && versions->as_array() != nullptr) return choose(versions);
    }
    if (is_modern_error(answer)) {
        if (answer.code == kUnsupportedVersion) {
            return choose(answer.body.at_pointer("/data/supported"));
        }
        return {Next::hopeless, {}, "server/discover was refused: " + said(answer)};
    }
    return {Next::initialize, std::string(legacy_mcp().front()), {}};
}

McpGreeting read_initialize(const RpcMessage& answer) {
    if (answer.kind == RpcMessage::Kind::error) {
        return {Next::hopeless, {}, "initialize was refused: " + said(answer)};
    }
    const auto* version = string_of(answer.body.find("protocolVersion"));
    if (version == nullptr)
        return {Next::hopeless, {}, "initialize was answered without a version"};
    const auto& known = legacy_mcp();
    if (std::find(known.begin(), known.end(), *version) == known.end()) {
        return {
            Next::hopeless, {}, "no protocol revision in common; the server speaks " + *version
        };
    }
    const auto* tasks = answer.body.at_pointer("/capabilities/tasks/requests/tools/call");
    const bool offered = tasks != nullptr && tasks->as_object() != nullptr;
    return {Next::ready, *version, {}, offered && *version == kWithTasks};
}

std::optional<std::vector<McpMirror>> read_mirrors(const Json& page, const std::string& tool) {
    const auto* one = find_tool(page, tool);
    if (one == nullptr) return std::nullopt;
    std::vector<McpMirror> mirrors;
    std::vector<std::string> path;
    const auto* schema = one->find("inputSchema");
    if (schema != nullptr && !collect(*schema, path, mirrors)) mirrors.clear();
    return mirrors;
}

std::optional<bool> read_wants_task(const Json& page, const std::string& tool) {
    const auto* one = find_tool(page, tool);
    if (one == nullptr) return std::nullopt;
    const auto* support = string_of(one->at_pointer("/execution/taskSupport"));
    return support != nullptr && *support == "required";
}

std::optional<std::string> mirrored(const McpMirror& mirror, const Json& arguments) {
    const auto* value = &arguments;
    for (const auto& name : mirror.path) {
        value = value->find(name);
        if (value == nullptr) return std::nullopt;
    }
    if (const auto* text = value->as_string()) return header_value(*text);
    if (const auto* number = value->as_number()) return number->text;
    if (const auto* boolean = value->as_bool()) return *boolean ? "true" : "false";
    return std::nullopt;
}

std::string header_value(std::string_view text) {
    constexpr std::string_view kOpen = "=?base64?";
    const bool plain =
        std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
    const bool padded = !text.empty() && (text.front() == ' ' || text.back() == ' ');
    const bool marked = text.starts_with(kOpen) && text.ends_with("?=");
    if (plain && !padded && !marked) return std::string(text);
    return std::string(kOpen) + base64(text) + "?=";
}

std::vector<std::string> McpInbox::take(const std::vector<RpcMessage>& messages) {
    std::vector<std::string> replies;
    for (const auto& message : messages) {
        ++messages_;
        if (message.answers(id_)) {
            if (!answer_) answer_ = message;
            continue;
        }
        if (message.kind != RpcMessage::Kind::request || modern_) continue;
        if (++replies_ > kMostReplies) continue;
        replies.push_back(
            message.method == "ping"
                ? rpc_result(message.id, Json(Json::Object{}))
                : rpc_refusal(message.id, kMethodNotFound, "outboxd offers no " + message.method)
        );
    }
    return replies;
}

bool McpInbox::flooded() const {
    return messages_ > kMostMessages || replies_ > kMostReplies;
}

}  // namespace tools
