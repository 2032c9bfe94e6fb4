#include "tools/tool_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "outbox/json.hpp"
#include "outbox/provider_key.hpp"
#include "outbox/sha256.hpp"
#include "tools/value_template.hpp"

namespace tools {
namespace {

using outbox::Json;
using outbox::KeySettings;

// As the file has it: neither a secret's value nor the order of members changes a hash.
Json as_written(const config::Value& value) {
    using Kind = config::Value::Kind;
    if (!value.source.empty()) return Json(value.source);
    switch (value.kind) {
        case Kind::null:
            return {};
        case Kind::boolean:
            return Json(value.text == "true");
        case Kind::number:
            return Json(Json::Number{value.text});
        case Kind::string:
            return Json(value.text);
        case Kind::sequence: {
            Json::Array items;
            for (const auto& item : value.items) items.push_back(as_written(item));
            return Json(std::move(items));
        }
        case Kind::mapping:
            break;
    }
    Json::Object members;
    for (const auto& member : value.members)
        members.emplace_back(member.key, as_written(member.value));
    std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) {
        return a.first < b.first;
    });
    return Json(std::move(members));
}

// Resolved, so that another server behind the same variable counts as another target.
std::string resolved(const config::Text& text) {
    return text.from_secret && !text.source.empty() ? text.source : text.value;
}

Json target_of(const config::HttpRequest& request) {
    Json::Array target{
        "http",
        resolved(request.method),
        resolved(request.url),
        request.credential ? Json(request.credential->value) : Json{}
    };
    // Only where there is one: the hashes of all other tools stay what they were.
    if (request.mtls) target.emplace_back(request.mtls->value);
    return Json(std::move(target));
}

Json target_of(const config::Command& command) {
    Json::Array items{"command"};
    for (const auto& item : command.argv) items.emplace_back(resolved(item));
    return Json(std::move(items));
}

// The database without its password, and what is asked. On the own database it does not matter what
// the statement said: no commit, no effect.
Json target_of(const config::Sql& sql) {
    if (!sql.dsn) return Json(Json::Array{"sql", "own"});
    const auto& dsn = sql.dsn->source.empty() ? sql.dsn->value : sql.dsn->source;
    return Json(Json::Array{"sql", dsn, resolved(sql.statement)});
}

// The server, and what is called there.
Json target_of(const config::Mcp& mcp) {
    Json::Array target{"mcp"};
    if (mcp.server) target.push_back(target_of(*mcp.server));
    if (mcp.command) target.push_back(target_of(*mcp.command));
    target.emplace_back(resolved(mcp.tool));
    return Json(std::move(target));
}

Json target_of(const config::LogAction&) {
    return Json("log");
}
Json target_of(const config::Resend&) {
    return Json("resend");
}
Json target_of(const config::Manual&) {
    return Json("manual");
}

Json key_json(const config::Key& key) {
    Json out;
    out.set("encoding", Json(key.encoding));
    out.set("prefix", Json(key.prefix));
    out.set("max_length", Json(static_cast<std::int64_t>(key.max_length)));
    out.set("window", key.window ? Json(static_cast<std::int64_t>(key.window->count())) : Json{});
    return out;
}

Json reconcile_json(const config::Tool& tool) {
    constexpr std::array<std::string_view, 6> kPatience = {
        "settle", "confirmations", "interval", "max_interval", "give_up_after", "after_absent"
    };
    Json out;
    if (!tool.reconcile_by) return out;
    out.set("target", std::visit([](const auto& by) { return target_of(by); }, *tool.reconcile_by));
    const auto* source = tool.source.find("reconcile");
    if (source == nullptr) return out;
    auto written = as_written(*source);
    if (auto* members = written.as_object()) {
        std::erase_if(*members, [&](const Json::Member& member) {
            return std::find(kPatience.begin(), kPatience.end(), member.first) != kPatience.end();
        });
    }
    out.set("source", std::move(written));
    return out;
}

KeySettings key_settings(const config::Key& key, config::Diagnostics& diagnostics) {
    using Encoding = KeySettings::Encoding;
    constexpr std::array<std::pair<std::string_view, Encoding>, 5> kEncodings = {{
        {"hex", Encoding::hex},
        {"uuid", Encoding::uuid},
        {"base64url", Encoding::base64url},
        {"base32hex", Encoding::base32hex},
        {"short", Encoding::short_},
    }};
    KeySettings settings;
    for (const auto& [name, encoding] : kEncodings) {
        if (name == key.encoding) settings.encoding = encoding;
    }
    settings.prefix = key.prefix;
    settings.max_length = key.max_length;
    settings.window = key.window;
    if (auto problem = outbox::check_key_settings(settings)) {
        diagnostics.error(key.mark, "key: " + *problem);
    }
    return settings;
}

}  // namespace

std::string target_text(const config::Tool& tool) {
    return outbox::to_text(
        std::visit([](const auto& execute) { return target_of(execute); }, tool.execute)
    );
}

std::string lookup_target_text(const config::Tool& tool) {
    if (!tool.reconcile_by) return {};
    return outbox::to_text(
        std::visit([](const auto& by) { return target_of(by); }, *tool.reconcile_by)
    );
}

std::int64_t request_hash(const config::Tool& tool) {
    const Json all(Json::Array{
        std::visit([](const auto& execute) { return target_of(execute); }, tool.execute),
        key_json(tool.key),
        reconcile_json(tool)
    });
    const auto digest = outbox::sha256({outbox::to_text(all)});
    std::uint64_t head = 0;
    for (std::size_t i = 0; i < sizeof head; ++i) head = (head << 8U) | digest[i];
    // Zero stands for "not known".
    return head == 0 ? 1 : static_cast<std::int64_t>(head);
}

std::string revision_of(const config::Tool& tool) {
    constexpr std::size_t kDigits = 16;
    const auto request = std::to_string(request_hash(tool));
    const auto text = outbox::to_text(as_written(tool.source));
    // What it inherits (defaults:, a compensation's tool) counts as what it says itself.
    const auto& retry = tool.retry;
    const auto& reconcile = tool.reconcile;
    const auto effective = fmt::format(
        "{} {} {} {} {} | {} {} {} {} {} {} | {} {} {} {} {} {}",
        tool.write,
        tool.timeout.count(),
        tool.connect_timeout.count(),
        tool.concurrency,
        tool.rate_per_second.value_or(0),
        retry.max_attempts,
        retry.initial.count(),
        retry.max.count(),
        retry.multiplier,
        retry.jitter,
        retry.give_up_after.count(),
        reconcile.settle.count(),
        reconcile.confirmations,
        reconcile.interval.count(),
        reconcile.max_interval.count(),
        reconcile.give_up_after.count(),
        reconcile.after_absent
    );
    const auto digest = outbox::sha256({tool.name, "\n", request, "\n", text, "\n", effective});
    return outbox::to_hex(digest).substr(0, kDigits);
}

outbox::ToolPolicy make_policy(const config::Tool& tool, config::Diagnostics& diagnostics) {
    outbox::ToolPolicy policy;
    policy.name = tool.name;
    policy.description = tool.description;
    policy.effect = tool.write ? outbox::Effect::write : outbox::Effect::read;
    policy.timeout = tool.timeout;
    policy.concurrency = tool.concurrency;
    policy.rate_per_second = tool.rate_per_second;
    policy.retry = {
        .max_attempts = tool.retry.max_attempts,
        .initial = tool.retry.initial,
        .max = tool.retry.max,
        .multiplier = tool.retry.multiplier,
        .jitter = tool.retry.jitter,
        .give_up_after = tool.retry.give_up_after
    };
    policy.reconcile = {
        .manual = tool.reconcile_by && std::holds_alternative<config::Manual>(*tool.reconcile_by),
        .resend = tool.reconcile_by && std::holds_alternative<config::Resend>(*tool.reconcile_by),
        .settle = tool.reconcile.settle,
        .confirmations = tool.reconcile.confirmations,
        .interval = tool.reconcile.interval,
        .max_interval = tool.reconcile.max_interval,
        .give_up_after = tool.reconcile.give_up_after,
        .after_absent = tool.reconcile.after_absent == "hold" ? outbox::AfterAbsent::hold
                                                              : outbox::AfterAbsent::retry
    };
    if (tool.own_transaction()) {
        // The claim of a probe moves the epoch: no transaction of an earlier attempt can commit
        // behind it, so there is nothing to wait for and nothing to confirm.
        policy.own_transaction = true;
        policy.reconcile.settle = {};
        policy.reconcile.confirmations = 1;
        policy.reconcile.after_absent = outbox::AfterAbsent::retry;
    }
    // Calls of one database lane run one after the other: what is leased should start soon.
    constexpr int kSqlConcurrency = 8;
    if (policy.concurrency == 0 && std::holds_alternative<config::Sql>(tool.execute)) {
        policy.concurrency = kSqlConcurrency;
    }
    policy.key = key_settings(tool.key, diagnostics);
    policy.request_hash = request_hash(tool);
    policy.revision = revision_of(tool);
    for (const auto& field : tool.dedup_fields) policy.dedup_fields.push_back(field.value);
    policy.compensations = tool.compensations;
    policy.compensation = tool.compensates_tool.has_value();
    if (tool.arguments) policy.arguments_schema = plain_json_text(*tool.arguments);
    return policy;
}

}  // namespace tools
