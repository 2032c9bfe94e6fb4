#include "tools/json_rpc.hpp"

#include <charconv>
#include <utility>

namespace tools {
namespace {

using outbox::Json;

// A batch is answered one by one; nobody sends that many for one request.
constexpr std::size_t kLargestBatch = 1000;

Json message() {
    Json out;
    out.set("jsonrpc", Json("2.0"));
    return out;
}

std::optional<int> as_int(const Json* value) {
    const auto* number = value != nullptr ? value->as_number() : nullptr;
    if (number == nullptr) return std::nullopt;
    int out = 0;
    const auto* end = number->text.data() + number->text.size();
    const auto parsed = std::from_chars(number->text.data(), end, out);
    if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
    return out;
}

// A member that is null counts as left out: some servers send both.
const Json* member(const Json& value, std::string_view name) {
    const auto* found = value.find(name);
    return found == nullptr || found->is_null() ? nullptr : found;
}

RpcMessage read(const Json& value) {
    RpcMessage out;
    const auto* version = value.find("jsonrpc");
    if (version == nullptr || !version->equals(Json("2.0"))) return out;
    if (const auto* id = value.find("id")) out.id = *id;
    const auto* method = value.find("method");
    const auto* result = member(value, "result");
    const auto* error = member(value, "error");
    const bool named = out.id.as_number() != nullptr || out.id.as_string() != nullptr;
    if (method != nullptr && method->as_string() != nullptr && result == nullptr &&
        error == nullptr) {
        out.method = *method->as_string();
        // An id of null names nothing that could be answered.
        out.kind = named ? RpcMessage::Kind::request : RpcMessage::Kind::notification;
    } else if (result != nullptr && error == nullptr && method == nullptr && named) {
        out.kind = RpcMessage::Kind::result;
        out.body = *result;
    } else if (error != nullptr && result == nullptr && method == nullptr) {
        out.code = as_int(error->find("code"));
        if (!out.code) return out;
        out.kind = RpcMessage::Kind::error;
        out.body = *error;
    }
    return out;
}

}  // namespace

std::string rpc_request(RpcId id, std::string_view method, Json params) {
    auto out = message();
    out.set("id", Json(id));
    out.set("method", Json(method));
    out.set("params", std::move(params));
    return outbox::to_text(out);
}

std::string rpc_notification(std::string_view method) {
    auto out = message();
    out.set("method", Json(method));
    return outbox::to_text(out);
}

std::string rpc_result(const Json& id, Json result) {
    auto out = message();
    out.set("id", id);
    out.set("result", std::move(result));
    return outbox::to_text(out);
}

std::string rpc_refusal(const Json& id, int code, std::string_view text) {
    Json error;
    error.set("code", Json(code));
    error.set("message", Json(text));
    auto out = message();
    out.set("id", id);
    out.set("error", std::move(error));
    return outbox::to_text(out);
}

bool RpcMessage::answers(RpcId request) const {
    return (kind == Kind::result || kind == Kind::error) && id.equals(Json(request));
}

std::vector<RpcMessage> parse_rpc(std::string_view text) {
    std::vector<RpcMessage> out;
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return out;
    const auto parsed = outbox::parse_foreign_json(text);
    const auto* batch = parsed.value ? parsed.value->as_array() : nullptr;
    if (batch == nullptr) {
        out.push_back(parsed.value ? read(*parsed.value) : RpcMessage{});
        return out;
    }
    for (const auto& one : *batch) {
        if (out.size() == kLargestBatch) break;
        out.push_back(read(one));
    }
    return out;
}

}  // namespace tools
