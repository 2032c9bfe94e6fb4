#include "daemon/metric_families.hpp"

#include <prometheus/text_serializer.h>

#include <algorithm>

namespace outboxd {

MetricFamilies::Counters& MetricFamilies::counters(
    const std::string& name, const std::string& help
) {
    known_.push_back({name, help, "counter"});
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
}

MetricFamilies::Gauges& MetricFamilies::gauges(const std::string& name, const std::string& help) {
    known_.push_back({name, help, "gauge"});
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry_);
}

MetricFamilies::Histograms& MetricFamilies::histograms(
    const std::string& name, const std::string& help
) {
    known_.push_back({name, help, "histogram"});
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_);
}

MetricFamilies::MetricFamilies()
    : attempts(counters("outboxd_attempts_total", "Attempts, by how they ended.")),
      attempt_duration(
          histograms("outboxd_attempt_duration_seconds", "From dispatch to the end of an attempt.")
      ),
      pickup_latency(
          histograms("outboxd_pickup_latency_seconds", "From being eligible to dispatch.")
      ),
      in_flight(gauges("outboxd_in_flight", "Attempts on their way.")),
      slots(gauges("outboxd_slots", "Attempts that may be on their way at once.")),
      operations(gauges("outboxd_operations", "Operations that are not final, by status.")),
      oldest(gauges("outboxd_oldest_seconds", "Age of the oldest operation in a status.")),
      attention(gauges("outboxd_attention", "Operations that need a person, by reason.")),
      enqueued(counters("outboxd_enqueued_total", "Operations that planners enqueued.")),
      replayed(counters("outboxd_replayed_total", "Enqueues answered with an earlier operation.")),
      unknown(counters("outboxd_unknown_total", "Attempts whose end nobody saw, by cause.")),
      reconciled(counters("outboxd_reconciled_total", "Probes, by what they found.")),
      late_results(counters("outboxd_late_results_total", "Answers that came after their lease.")),
      fenced_writes(counters(
          "outboxd_fenced_writes_total", "Writes refused because somebody else moved the epoch."
      )),
      duplicate_effects(
          counters("outboxd_duplicate_effects_total", "Operations proven to have had two effects.")
      ),
      lease_batch(histograms("outboxd_lease_batch_size", "Operations per lease.")),
      complete_batch(histograms("outboxd_complete_batch_size", "Operations per completion.")),
      database_up(gauges("outboxd_database_up", "1 while the database answers.")),
      database_errors(counters("outboxd_database_errors_total", "Database errors, by kind.")),
      database_statement(
          histograms("outboxd_database_statement_seconds", "Round trip of one statement.")
      ),
      xmin_horizon(gauges(
          "outboxd_xmin_horizon_age_seconds", "Age of the oldest snapshot that holds back vacuum."
      )),
      last_reconcile(gauges(
          "outboxd_last_reconcile_timestamp_seconds", "When the reconciler last finished a pass."
      )),
      clock_offset(
          gauges("outboxd_clock_offset_seconds", "The database's clock against this machine's.")
      ),
      credential_errors(counters("outboxd_credential_errors_total", "Credentials refused.")),
      breaker_open(gauges("outboxd_breaker_open", "1 while a tool's circuit breaker is open.")),
      probe_breaker_open(gauges(
          "outboxd_probe_breaker_open", "1 while the circuit breaker of a tool's look-ups is open."
      )),
      lane_paused(gauges(
          "outboxd_lane_paused_seconds",
          "How long the other side still asks to wait, by what waits: attempts or probes."
      )),
      config_reloads(counters("outboxd_config_reloads_total", "Reloads, by result.")),
      config_drift(counters(
          "outboxd_config_drift_total",
          "Starts and reloads whose configuration of a tool did not agree with work under way."
      )),
      build_info(gauges("outboxd_build_info", "Always 1; the labels say what runs.")) {}

std::string MetricFamilies::serialize() const {
    auto collected = registry_.Collect();
    std::string text = prometheus::TextSerializer().Serialize(collected);
    for (const auto& known : known_) {
        auto is_known = [&](const auto& family) { return family.name == known.name; };
        if (std::any_of(collected.begin(), collected.end(), is_known)) continue;
        text += "# HELP " + known.name + " " + known.help + "\n";
        text += "# TYPE " + known.name + " " + known.type + "\n";
    }
    return text;
}

}  // namespace outboxd
