// database, worker, log, limits, retention, testing.
#include <fmt/format.h>

#include "config/mask.hpp"
#include "config/sections.hpp"

namespace config {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;

void read_embedded(MapReader& database, Database& out) {
    if (!database.has("embedded")) return;
    auto in = database.section("embedded");
    Embedded embedded;
    in.string("data_dir", embedded.data_dir);
    in.finish();
    out.embedded = std::move(embedded);
}

// It goes into every provider key.
bool good_namespace(const std::string& name) {
    bool fine = name.size() <= 100;
    for (const char c : name) fine = fine && static_cast<unsigned char>(c) > 0x20 && c != 0x7f;
    return fine;
}

void check_namespace(MapReader& in, const Database& database) {
    const auto* found = in.value("namespace");
    if (!found || found->unresolved || good_namespace(database.key_namespace)) return;
    in.error(
        *found,
        "namespace",
        "must be at most 100 characters without spaces",
        "it goes into every provider key, for ever: a short word is best"
    );
}

bool read_dsn(MapReader& in, Secret& out) {
    const auto* dsn = in.member("dsn");
    if (!dsn || !in.string("dsn", out.value)) return false;
    out.source = dsn->value.source;
    out.mark = dsn->value.mark;
    if (holds_literal_password(out.source.empty() ? out.value : out.source)) {
        in.diagnostics().warning(
            out.mark,
            in.path() + ".dsn: a password in the file itself",
            "use ${cred:name}, ${file:/path} or ${env:VAR}"
        );
    }
    return true;
}

void check_name(MapReader& in, const Source& source, const Database& before) {
    const auto* name = in.value("name");
    if (!name || name->unresolved) return;
    if (!good_namespace(source.name)) {
        in.error(
            *name,
            "name",
            "must be 1 to 100 characters without spaces",
            "it is the namespace of the provider keys, for ever: a short word is best"
        );
    } else if (before.find(source.name) != nullptr) {
        in.error(
            *name,
            "name",
            fmt::format("{} is the name of two sources", shown(*name)),
            "equal names would give equal operation ids in both databases the same provider key"
        );
    }
}

Source read_source(
    const Value& item, const std::string& path, const Database& before, Diagnostics& diagnostics
) {
    MapReader in(&item, item.mark, path, diagnostics);
    Source source;
    source.mark = item.mark;
    if (in.require("name", "a short word for the database: it is the namespace of its keys")) {
        if (in.string("name", source.name)) check_name(in, source, before);
    }
    if (in.require("dsn", "libpq keywords or a URI, for example ${cred:orders_dsn}")) {
        read_dsn(in, source.dsn);
    }
    for (const auto& other : before.sources) {
        const auto* dsn = in.value("dsn");
        if (!dsn || dsn->unresolved || source.dsn.value != other.dsn.value) continue;
        in.error(
            *dsn,
            "dsn",
            fmt::format("is that of {}, too", other.name),
            "one outbox has one namespace: leave one of the two out"
        );
    }
    in.finish();
    return source;
}

// What one database has to say for itself is said by each source here.
void read_sources(MapReader& in, Database& out) {
    const auto* list = in.member("sources");
    if (!list) return;
    for (const char* key : {"dsn", "embedded", "namespace"}) {
        const auto* other = in.member(key);
        if (!other) continue;
        in.diagnostics().error(
            other->key_mark,
            fmt::format("database.{} and database.sources exclude each other", key),
            "each source has a dsn of its own, and its name is its namespace"
        );
    }
    if (list->value.unresolved) return;
    const bool is_list = list->value.is(Value::Kind::sequence);
    if (!is_list || list->value.items.empty()) {
        in.error(
            list->value,
            "sources",
            is_list ? "must name a database"
                    : fmt::format("must be a list of databases, not {}", shown(list->value)),
            "sources: [ { name: orders, dsn: … }, { name: support, dsn: … } ]"
        );
        return;
    }
    for (std::size_t i = 0; i < list->value.items.size(); ++i) {
        const auto path = fmt::format("database.sources[{}]", i);
        out.sources.push_back(read_source(list->value.items[i], path, out, in.diagnostics()));
    }
    // What shows a request without saying whose it is takes the first.
    out.key_namespace = out.sources.front().name;
}

}  // namespace

void read_database(MapReader& root, Database& out) {
    auto in = root.section("database");
    out.mark = in.key_mark();
    read_embedded(in, out);
    if (const auto* dsn = in.member("dsn")) {
        read_dsn(in, out.dsn);
        if (out.embedded) {
            in.diagnostics().error(
                dsn->key_mark,
                "database.dsn and database.embedded exclude each other",
                "keep dsn for a database that exists, embedded for a private one"
            );
        }
    }
    in.string("namespace", out.key_namespace);
    check_namespace(in, out);
    read_sources(in, out);
    in.finish();
}

void read_worker(MapReader& root, Worker& out) {
    auto in = root.section("worker");
    in.string("name", out.name);
    in.integer("concurrency", out.concurrency, {1, 100'000});
    {
        auto poll = in.section("poll");
        poll.duration("busy", out.poll_busy, {1ms, 1min});
        poll.duration("idle", out.poll_idle, {10ms, 10min});
        const auto* given = poll.value("busy") ? poll.value("busy") : poll.value("idle");
        if (given && out.poll_busy > out.poll_idle) {
            poll.error(
                *given, "busy", "is longer than poll.idle", "busy is the shorter of the two"
            );
        }
        poll.finish();
    }
    std::string wakeup = "auto";
    in.choice("wakeup", wakeup, {"auto", "off"});
    out.wakeup = wakeup == "auto";
    in.duration("drain_timeout", out.drain_timeout, {0ms, 24h});
    in.duration("lease_margin", out.lease_margin, {100ms, 24h});
    in.finish();
}

void read_log(MapReader& root, LogSettings& out) {
    auto in = root.section("log");
    in.choice("level", out.level, {"debug", "info", "warn", "error"});
    in.choice("format", out.format, {"json", "text"});
    in.finish();
}

void read_limits(MapReader& root, Limits& out) {
    auto in = root.section("limits");
    in.size("arguments", out.arguments, {256, 64 * kMiB});
    in.size("result", out.result, {256, 64 * kMiB});
    in.size("response", out.response, {256, 256 * kMiB});
    in.finish();
}

void read_retention(MapReader& root, Retention& out) {
    const Range<Duration> range{1min, std::chrono::hours{24 * 366 * 50}};
    auto in = root.section("retention");
    in.duration("payloads", out.payloads, range);
    in.duration("events", out.events, range);
    in.duration_or_forever("keys", out.keys, range);
    in.finish();
}

void read_testing(MapReader& root, Config& out) {
    auto in = root.section("testing");
    in.boolean("allow_failpoints", out.allow_failpoints);
    in.finish();
}

}  // namespace config
