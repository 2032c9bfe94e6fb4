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

void check_namespace(MapReader& in, const Database& database) {
    const auto* found = in.value("namespace");
    if (!found || found->unresolved) return;
    const auto& name = database.key_namespace;
    bool fine = name.size() <= 100;
    for (const char c : name) fine = fine && static_cast<unsigned char>(c) > 0x20 && c != 0x7f;
    if (!fine) {
        in.error(
            *found,
            "namespace",
            "must be at most 100 characters without spaces",
            "it goes into every provider key, for ever: a short word is best"
        );
    }
}

}  // namespace

void read_database(MapReader& root, Database& out) {
    auto in = root.section("database");
    out.mark = in.key_mark();
    in.refuse("sources", "is not in this version", "use dsn: one daemon serves one database");
    read_embedded(in, out);
    if (const auto* dsn = in.member("dsn")) {
        if (in.string("dsn", out.dsn.value)) {
            out.dsn.source = dsn->value.source;
            out.dsn.mark = dsn->value.mark;
            const auto& written = out.dsn.source.empty() ? out.dsn.value : out.dsn.source;
            if (holds_literal_password(written)) {
                in.diagnostics().warning(
                    dsn->value.mark,
                    "database.dsn: a password in the file itself",
                    "use ${cred:name}, ${file:/path} or ${env:VAR}"
                );
            }
        }
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
