// Time-outs, retry, reconcile and http settings: in defaults: and in every tool.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "config/sections.hpp"
#include "config/units.hpp"

namespace config {
namespace {

// Reported at the one that is written here; the other may come from the defaults.
void check_order(
    MapReader& in, std::string_view low_key, Duration low, std::string_view high_key, Duration high
) {
    if (low <= high) return;
    const auto* at = in.value(low_key);
    const auto key = at ? low_key : high_key;
    if (!at) at = in.value(high_key);
    if (!at) return;
    in.error(
        *at,
        key,
        fmt::format(
            "{} {} is longer than {} {}", low_key, duration_text(low), high_key, duration_text(high)
        ),
        fmt::format("{} is the first delay, {} the longest", low_key, high_key)
    );
}

void read_ca_file(MapReader& in, Http& out) {
    if (!in.string("ca_file", out.ca_file) || !out.ca_file) return;
    errno = 0;
    std::ifstream pem(*out.ca_file, std::ios::binary);
    if (pem.is_open() && pem.peek() != std::ifstream::traits_type::eof()) return;
    const int problem = errno;
    const auto& at = *in.value("ca_file");
    in.error(
        at,
        "ca_file",
        fmt::format(
            "cannot read {}: {}", shown(at), problem == 0 ? "it is empty" : std::strerror(problem)
        ),
        "does it exist, and may this user read it?"
    );
}

}  // namespace

void read_timeouts(MapReader& in, Duration& timeout, Duration& connect_timeout) {
    in.duration("timeout", timeout, kTimeouts);
    const bool given = in.duration("connect_timeout", connect_timeout, kTimeouts);
    if (connect_timeout <= timeout) return;
    if (given) {
        const auto* at = in.value("connect_timeout");
        in.diagnostics().warning(
            at->mark,
            fmt::format(
                "{}.connect_timeout {} is longer than timeout {}",
                in.path(),
                duration_text(connect_timeout),
                duration_text(timeout)
            ),
            "timeout is the hard end of an attempt, connecting included"
        );
    }
    connect_timeout = timeout;
}

void read_retry(MapReader& in, Retry& out) {
    in.integer("max_attempts", out.max_attempts, {1, 1'000'000});
    in.duration("initial", out.initial, {1ms, 24h});
    in.duration("max", out.max, {1ms, 24h});
    in.number("multiplier", out.multiplier, {1, 100});
    in.number("jitter", out.jitter, {0, 1});
    in.duration("give_up_after", out.give_up_after, kHorizons);
    check_order(in, "initial", out.initial, "max", out.max);
}

void read_http_settings(MapReader& in, Http& out) {
    in.boolean("tls_verify", out.tls_verify);
    read_ca_file(in, out);
    in.integer("max_connections_per_host", out.max_connections_per_host, {1, 10'000});
    in.boolean("allow_private_hosts", out.allow_private_hosts);
    read_proxy(in, out);
    if (out.allow_private_hosts || !out.proxy) return;
    const auto* at = in.value("allow_private_hosts");
    if (!at) at = in.value("proxy");
    if (!at) return;
    in.diagnostics().warning(
        at->mark,
        fmt::format("{}.allow_private_hosts: false does not reach behind a proxy", in.path()),
        "the proxy looks names up: let it refuse private addresses"
    );
}

void read_reconcile_policy(MapReader& in, Reconcile& out) {
    in.duration("settle", out.settle, {0ms, kHorizons.max});
    in.integer("confirmations", out.confirmations, {1, 1000});
    in.duration("interval", out.interval, {50ms, 24h});
    in.duration("max_interval", out.max_interval, {50ms, 24h});
    in.duration("give_up_after", out.give_up_after, kHorizons);
    in.choice("after_absent", out.after_absent, {"retry", "hold"});
    check_order(in, "interval", out.interval, "max_interval", out.max_interval);
}

void read_defaults(MapReader& root, Defaults& out) {
    auto in = root.section("defaults");
    read_timeouts(in, out.timeout, out.connect_timeout);
    auto retry = in.section("retry");
    read_retry(retry, out.retry);
    retry.finish();
    auto reconcile = in.section("reconcile");
    read_reconcile_policy(reconcile, out.reconcile);
    reconcile.finish();
    auto http = in.section("http");
    read_http_settings(http, out.http);
    http.finish();
    in.finish();
}

}  // namespace config
