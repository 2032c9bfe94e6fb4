#pragma once

#include <array>
#include <chrono>
#include <initializer_list>
#include <map>
#include <string>

#include "daemon/metric_families.hpp"
#include "outbox/clock.hpp"
#include "outbox/operation.hpp"
#include "outbox/outcome.hpp"
#include "outbox/store.hpp"
#include "outbox/transition.hpp"

// The series of one tool (and source), with the closed sets that label them. Of metrics.cpp alone.
namespace outboxd {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

inline const Histogram::BucketBoundaries kSeconds = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300
};
inline constexpr std::array kOutcomes = {
    "succeeded", "accepted", "rejected", "retry", "unknown", "attention"
};
static_assert(kOutcomes.size() == std::variant_size_v<outbox::Outcome>);
inline constexpr std::array kVerdicts = {"found", "absent", "pending", "conflict", "inconclusive"};
static_assert(kVerdicts.size() == std::variant_size_v<outbox::Verdict>);

inline constexpr std::array kCauses = {
    outbox::Cause::timeout,
    outbox::Cause::reset,
    outbox::Cause::status,
    outbox::Cause::unreadable,
    outbox::Cause::exit_code,
    outbox::Cause::killed,
    outbox::Cause::lease_expired,
    outbox::Cause::rejected_after_unknown,
    outbox::Cause::timeline,
    outbox::Cause::mcp,
    outbox::Cause::other,
};
// What the queue can hold; final operations are counted by enqueued and outcomes.
inline constexpr std::array kOpen = {
    outbox::Status::pending,
    outbox::Status::scheduled,
    outbox::Status::attempting,
    outbox::Status::unknown,
};

inline constexpr std::array kDrifts = {"key", "request", "revision"};
inline constexpr std::array kLanes = {"attempts", "probes"};

inline double seconds(std::chrono::nanoseconds duration) {
    return std::chrono::duration<double>(duration).count();
}

// Labels of one series: those of its source, and its own.
inline prometheus::Labels labelled(
    const prometheus::Labels& source, std::initializer_list<prometheus::Labels::value_type> own
) {
    prometheus::Labels labels = source;
    labels.insert(own.begin(), own.end());
    return labels;
}

// Of one tool, whichever source its operations are of: their limits are shared.
struct SharedToolSeries {
    Gauge* in_flight;
    Gauge* slots;
    Gauge* breaker_open;
    Gauge* probe_breaker_open;
    std::array<Gauge*, kLanes.size()> lane_paused{};
    std::array<outbox::BootClock::time_point, kLanes.size()> paused_until{};

    SharedToolSeries(MetricFamilies& families, const std::string& tool)
        : in_flight(&families.in_flight.Add({{"tool", tool}})),
          slots(&families.slots.Add({{"tool", tool}})),
          breaker_open(&families.breaker_open.Add({{"tool", tool}})),
          probe_breaker_open(&families.probe_breaker_open.Add({{"tool", tool}})) {
        for (std::size_t i = 0; i < kLanes.size(); ++i) {
            lane_paused[i] = &families.lane_paused.Add({{"tool", tool}, {"lane", kLanes[i]}});
        }
    }
};

// Of one tool in one source, made at once: a label that was never counted reads zero, not nothing.
struct ToolSeries {
    std::array<Counter*, kOutcomes.size()> attempts{};
    std::array<Counter*, kVerdicts.size()> reconciled{};
    std::map<outbox::Cause, Counter*> unknown;
    Histogram* duration;
    Histogram* pickup;
    Counter* late;
    Counter* fenced;
    Counter* duplicate;
    std::array<Counter*, kDrifts.size()> drift{};

    ToolSeries(MetricFamilies& families, const prometheus::Labels& source, const std::string& tool)
        : duration(&families.attempt_duration.Add(labelled(source, {{"tool", tool}}), kSeconds)),
          pickup(&families.pickup_latency.Add(labelled(source, {{"tool", tool}}), kSeconds)),
          late(&families.late_results.Add(labelled(source, {{"tool", tool}}))),
          fenced(&families.fenced_writes.Add(labelled(source, {{"tool", tool}}))),
          duplicate(&families.duplicate_effects.Add(labelled(source, {{"tool", tool}}))) {
        for (std::size_t i = 0; i < kDrifts.size(); ++i) {
            drift[i] =
                &families.config_drift.Add(labelled(source, {{"tool", tool}, {"kind", kDrifts[i]}})
                );
        }
        for (std::size_t i = 0; i < kOutcomes.size(); ++i) {
            attempts[i] =
                &families.attempts.Add(labelled(source, {{"tool", tool}, {"outcome", kOutcomes[i]}})
                );
        }
        for (std::size_t i = 0; i < kVerdicts.size(); ++i) {
            reconciled[i] = &families.reconciled.Add(
                labelled(source, {{"tool", tool}, {"verdict", kVerdicts[i]}})
            );
        }
        for (auto cause : kCauses) {
            std::string name(outbox::to_string(cause));
            unknown[cause] =
                &families.unknown.Add(labelled(source, {{"tool", tool}, {"cause", name}}));
        }
    }
};

// What is open of one tool, served by this daemon or by another one.
struct BacklogSeries {
    std::map<outbox::Status, Gauge*> operations;
    std::map<outbox::Status, Gauge*> oldest;
    std::map<std::string, Gauge*, std::less<>> attention;  // by reason; of final ones too

    BacklogSeries(
        MetricFamilies& families, const prometheus::Labels& source, const std::string& tool
    ) {
        for (auto status : kOpen) {
            const auto labels = labelled(
                source, {{"tool", tool}, {"status", std::string(outbox::to_string(status))}}
            );
            operations[status] = &families.operations.Add(labels);
            oldest[status] = &families.oldest.Add(labels);
        }
        for (auto reason : outbox::kAllAttentionReasons) {
            const std::string name(outbox::to_string(reason));
            attention[name] =
                &families.attention.Add(labelled(source, {{"tool", tool}, {"reason", name}}));
        }
    }
};

struct TallySeries {
    Counter& enqueued;
    Counter& replayed;

    TallySeries(MetricFamilies& families, const prometheus::Labels& source, const std::string& tool)
        : enqueued(families.enqueued.Add(labelled(source, {{"tool", tool}}))),
          replayed(families.replayed.Add(labelled(source, {{"tool", tool}}))) {}
};

}  // namespace outboxd
