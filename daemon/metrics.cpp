#include "daemon/metrics.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <mutex>

#include "daemon/metric_families.hpp"
#include "daemon/metric_series.hpp"
#include "outbox/clock.hpp"

namespace outboxd {

namespace {

const std::string kOther = "other";

const Histogram::BucketBoundaries kStatementSeconds = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30
};
const Histogram::BucketBoundaries kBatch = {1, 2, 5, 10, 25, 50, 100, 250, 500, 1000};

constexpr std::array kErrorKinds = {
    outbox::StoreError::Kind::unavailable,
    outbox::StoreError::Kind::conflict,
    outbox::StoreError::Kind::in_doubt,
    outbox::StoreError::Kind::data,
    outbox::StoreError::Kind::bug,
};

std::string kind_name(outbox::StoreError::Kind kind) {
    switch (kind) {
        case outbox::StoreError::Kind::unavailable:
            return "unavailable";
        case outbox::StoreError::Kind::conflict:
            return "conflict";
        case outbox::StoreError::Kind::in_doubt:
            return "in_doubt";
        case outbox::StoreError::Kind::data:
            return "data";
        case outbox::StoreError::Kind::bug:
            return "bug";
    }
    return "bug";
}

}  // namespace

// What belongs to the process.
class SourceMetrics::Shared {
 public:
    explicit Shared(const BuildInfo& build)
        : reloads_ok(families.config_reloads.Add({{"result", "ok"}})),
          reloads_error(families.config_reloads.Add({{"result", "error"}})) {
        families.build_info.Add({{"version", build.version}, {"commit", build.commit}}).Set(1);
        add_tool(kOther);
    }

    void add_tool(const std::string& tool) {
        if (tools.contains(tool)) return;
        std::lock_guard lock(pauses);
        tools.emplace(tool, SharedToolSeries(families, tool));
    }

    SharedToolSeries& of(std::string_view tool) {
        auto found = tools.find(tool);
        return found != tools.end() ? found->second : tools.find(kOther)->second;
    }

    Counter& credential_error(const std::string& credential) {
        auto& counter = credentials_[credential];
        if (counter == nullptr) {
            counter = &families.credential_errors.Add({{"credential", credential}});
        }
        return *counter;
    }

    // What is left of the pauses; when somebody looks.
    void measure_pauses(outbox::BootClock::time_point now) {
        std::lock_guard lock(pauses);
        for (auto& [name, series] : tools) {
            for (std::size_t i = 0; i < kLanes.size(); ++i) {
                const auto left =
                    std::max(series.paused_until[i] - now, outbox::BootClock::duration::zero());
                series.lane_paused[i]->Set(seconds(left));
            }
        }
    }

    MetricFamilies families;
    std::mutex pauses;
    std::map<std::string, SharedToolSeries, std::less<>> tools;
    Counter& reloads_ok;
    Counter& reloads_error;

 private:
    std::map<std::string, Counter*> credentials_;  // names come from the configuration
};

class SourceMetrics::Series {
 public:
    // labels: of every series, empty where there is one source alone.
    Series(MetricFamilies& all, const std::string& name, prometheus::Labels labels)
        : families(all),
          source(std::move(labels)),
          named({{"source", name}}),
          lease_batch(families.lease_batch.Add(source, kBatch)),
          complete_batch(families.complete_batch.Add(source, kBatch)),
          database_up(families.database_up.Add(named)),
          last_reconcile(families.last_reconcile.Add(named)) {
        for (auto kind : kErrorKinds) {
            database_errors[kind] =
                &families.database_errors.Add(labelled(named, {{"kind", kind_name(kind)}}));
        }
        add_tool(kOther);
    }

    void add_tool(const std::string& tool) {
        if (tools.contains(tool)) return;
        tools.emplace(tool, ToolSeries(families, source, tool));
        (void)backlog(tool, true);
        (void)tally(tool);
    }

    BacklogSeries& backlog(const std::string& tool, bool served) {
        const auto& label = served || tools.contains(tool) ? tool : kOther;
        return backlogs_.try_emplace(label, families, source, label).first->second;
    }

    void clear_backlogs() {
        for (auto& [tool, backlog] : backlogs_) {
            for (auto& [status, gauge] : backlog.operations) gauge->Set(0);
            for (auto& [status, gauge] : backlog.oldest) gauge->Set(0);
        }
    }

    // Null: a reason that this build does not know.
    Gauge* attention(const std::string& tool, const std::string& reason) {
        auto found = backlogs_.find(tool);
        auto& backlog = found != backlogs_.end() ? found->second : this->backlog(tool, false);
        auto gauge = backlog.attention.find(reason);
        return gauge == backlog.attention.end() ? nullptr : gauge->second;
    }

    void clear_attention() {
        for (auto& [tool, backlog] : backlogs_) {
            for (auto& [reason, gauge] : backlog.attention) gauge->Set(0);
        }
    }

    TallySeries& tally(const std::string& tool) {
        return tallies_.try_emplace(tool, families, source, tool).first->second;
    }

    ToolSeries& of(std::string_view tool) {
        auto found = tools.find(tool);
        return found != tools.end() ? found->second : tools.find(kOther)->second;
    }

    // Called from the lanes' threads. The names are those of the query files: a closed set.
    Histogram& statement(std::string_view name) {
        std::lock_guard lock(statements_mutex_);
        auto found = statements_.find(name);
        if (found != statements_.end()) return *found->second;
        std::string key(name);
        auto& added = families.database_statement.Add(
            labelled(source, {{"statement", key}}), kStatementSeconds
        );
        statements_.emplace(std::move(key), &added);
        return added;
    }

    // Without a series until it is known: zero would be a claim.
    Gauge& clock_offset() {
        if (clock_offset_ == nullptr) clock_offset_ = &families.clock_offset.Add(named);
        return *clock_offset_;
    }

    Gauge& xmin_horizon() {
        if (xmin_horizon_ == nullptr) xmin_horizon_ = &families.xmin_horizon.Add(named);
        return *xmin_horizon_;
    }

    MetricFamilies& families;
    const prometheus::Labels source;
    const prometheus::Labels named;  // where the contract has the label in any case
    std::map<std::string, ToolSeries, std::less<>> tools;
    std::map<outbox::StoreError::Kind, Counter*> database_errors;
    Histogram& lease_batch;
    Histogram& complete_batch;
    Gauge& database_up;
    Gauge& last_reconcile;

 private:
    std::map<std::string, BacklogSeries> backlogs_;
    std::map<std::string, TallySeries> tallies_;
    Gauge* clock_offset_ = nullptr;
    Gauge* xmin_horizon_ = nullptr;
    std::mutex statements_mutex_;
    std::map<std::string, Histogram*, std::less<>> statements_;
};

SourceMetrics::SourceMetrics(std::unique_ptr<Series> series, Shared& shared)
    : series_(std::move(series)), shared_(shared) {}

SourceMetrics::~SourceMetrics() = default;

Metrics::Metrics(
    const std::vector<std::string>& tools,
    const std::vector<std::string>& sources,
    const BuildInfo& build
)
    : shared_(std::make_unique<SourceMetrics::Shared>(build)) {
    for (const auto& name : sources) {
        prometheus::Labels labels;
        if (sources.size() > 1) labels.emplace("source", name);
        sources_.push_back(std::make_unique<SourceMetrics>(
            std::make_unique<SourceMetrics::Series>(shared_->families, name, std::move(labels)),
            *shared_
        ));
    }
    add_tools(tools);
}

Metrics::~Metrics() = default;

void Metrics::add_tools(const std::vector<std::string>& tools) {
    for (const auto& tool : tools) {
        shared_->add_tool(tool);
        for (auto& source : sources_) source->series_->add_tool(tool);
    }
}

void Metrics::add_credentials(const std::vector<std::string>& credentials) {
    for (const auto& credential : credentials) shared_->credential_error(credential);
}

void Metrics::config_reloaded(bool ok) {
    (ok ? shared_->reloads_ok : shared_->reloads_error).Increment();
}

std::string Metrics::serialize() const {
    shared_->measure_pauses(outbox::BootClock::now());
    return shared_->families.serialize();
}

void SourceMetrics::leased(std::size_t batch) {
    series_->lease_batch.Observe(static_cast<double>(batch));
}

void SourceMetrics::attempt_started(
    std::string_view tool, std::chrono::nanoseconds pickup_latency
) {
    series_->of(tool).pickup->Observe(seconds(pickup_latency));
}

void SourceMetrics::attempt_ended(
    std::string_view tool, const outbox::Outcome& outcome, std::chrono::nanoseconds took
) {
    auto& series = series_->of(tool);
    series.attempts[outcome.index()]->Increment();
    series.duration->Observe(seconds(took));
}

void SourceMetrics::became_unknown(std::string_view tool, outbox::Cause cause) {
    series_->of(tool).unknown.at(cause)->Increment();
}

void SourceMetrics::probed(std::string_view tool, const outbox::Verdict& verdict) {
    series_->of(tool).reconciled[verdict.index()]->Increment();
}

void SourceMetrics::completed(std::size_t batch) {
    series_->complete_batch.Observe(static_cast<double>(batch));
}

void SourceMetrics::fenced(std::string_view tool) {
    series_->of(tool).fenced->Increment();
}

void SourceMetrics::late_result(std::string_view tool) {
    series_->of(tool).late->Increment();
}

void SourceMetrics::duplicate_effect(std::string_view tool) {
    series_->of(tool).duplicate->Increment();
}

void SourceMetrics::reconciled_pass() {
    series_->last_reconcile.SetToCurrentTime();
}

void SourceMetrics::slots(std::string_view tool, int in_flight, int limit) {
    auto& series = shared_.of(tool);
    series.in_flight->Set(in_flight);
    series.slots->Set(limit);
}

void SourceMetrics::statement_done(std::string_view statement, std::chrono::nanoseconds took) {
    series_->statement(statement).Observe(seconds(took));
}

void SourceMetrics::database_error(outbox::StoreError::Kind kind) {
    series_->database_errors.at(kind)->Increment();
}

void SourceMetrics::database_up(bool up) {
    series_->database_up.Set(up ? 1 : 0);
}

void SourceMetrics::clock_offset(std::chrono::nanoseconds offset) {
    series_->clock_offset().Set(seconds(offset));
}

void SourceMetrics::set_samples(std::span<const outbox::ToolSample> samples) {
    series_->clear_backlogs();
    for (const auto& sample : samples) {
        auto& backlog = series_->backlog(sample.tool, sample.served);
        auto operations = backlog.operations.find(sample.status);
        if (operations == backlog.operations.end()) continue;
        // Several tools may share `other`: they add up, and the oldest of them counts.
        operations->second->Increment(static_cast<double>(sample.count));
        auto* oldest = backlog.oldest.at(sample.status);
        if (sample.oldest_seconds > oldest->Value()) oldest->Set(sample.oldest_seconds);
    }
}

void SourceMetrics::set_attention(const std::vector<outbox::AttentionCount>& counts) {
    series_->clear_attention();
    for (const auto& [tool, reason, count] : counts) {
        if (auto* gauge = series_->attention(tool, reason)) {
            gauge->Increment(static_cast<double>(count));
        }
    }
}

void SourceMetrics::set_horizon_age(std::chrono::duration<double> age) {
    series_->xmin_horizon().Set(age.count());
}

void SourceMetrics::credential_error(std::string_view credential) {
    shared_.credential_error(std::string(credential)).Increment();
}

// Counted, not set: during a reload the breakers of two configurations may be open.
void SourceMetrics::breaker_opened(std::string_view tool) {
    shared_.of(tool).breaker_open->Increment();
}

void SourceMetrics::breaker_closed(std::string_view tool) {
    shared_.of(tool).breaker_open->Decrement();
}

void SourceMetrics::probe_breaker_opened(std::string_view tool) {
    shared_.of(tool).probe_breaker_open->Increment();
}

void SourceMetrics::probe_breaker_closed(std::string_view tool) {
    shared_.of(tool).probe_breaker_open->Decrement();
}

void SourceMetrics::paused(std::string_view tool, bool probes, std::chrono::nanoseconds wait) {
    auto& series = shared_.of(tool);
    std::lock_guard lock(shared_.pauses);
    auto& until = series.paused_until[probes ? 1 : 0];
    until = std::max(until, outbox::BootClock::now() + wait);
}

void SourceMetrics::configuration_drift(std::string_view tool, outbox::Drift kind) {
    series_->of(tool).drift[static_cast<std::size_t>(kind)]->Increment();
}

void SourceMetrics::add_tallies(std::span<const outbox::ToolTally> tallies) {
    for (const auto& tally : tallies) {
        auto& counters = series_->tally(tally.tool);
        counters.enqueued.Increment(static_cast<double>(tally.enqueued));
        counters.replayed.Increment(static_cast<double>(tally.replayed));
    }
}

}  // namespace outboxd
