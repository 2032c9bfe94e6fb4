#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>
#include <vector>

namespace outboxd {

// The families of contract/cli.md in its order. One without a series yet (a gauge that was not
// sampled, say) is not printed by prometheus-cpp: empty_families() says its TYPE all the same.
class MetricFamilies {
 public:
    using Counters = prometheus::Family<prometheus::Counter>;
    using Gauges = prometheus::Family<prometheus::Gauge>;
    using Histograms = prometheus::Family<prometheus::Histogram>;

 private:
    struct Known {
        std::string name;
        std::string help;
        std::string type;
    };
    prometheus::Registry registry_;
    std::vector<Known> known_;
    Counters& counters(const std::string& name, const std::string& help);
    Gauges& gauges(const std::string& name, const std::string& help);
    Histograms& histograms(const std::string& name, const std::string& help);

 public:
    Counters& attempts;
    Histograms& attempt_duration;
    Histograms& pickup_latency;
    Gauges& in_flight;
    Gauges& slots;
    Gauges& operations;
    Gauges& oldest;
    Gauges& attention;
    Counters& enqueued;
    Counters& replayed;
    Counters& unknown;
    Counters& reconciled;
    Counters& late_results;
    Counters& fenced_writes;
    Counters& duplicate_effects;
    Histograms& lease_batch;
    Histograms& complete_batch;
    Gauges& database_up;
    Counters& database_errors;
    Histograms& database_statement;
    Gauges& xmin_horizon;
    Gauges& last_reconcile;
    Gauges& clock_offset;
    Counters& credential_errors;
    Gauges& breaker_open;
    Gauges& probe_breaker_open;
    Gauges& lane_paused;
    Counters& config_reloads;
    Counters& config_drift;
    Gauges& build_info;

    MetricFamilies();
    // The whole page, in the Prometheus text format.
    [[nodiscard]] std::string serialize() const;
};

}  // namespace outboxd
