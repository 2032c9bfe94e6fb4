#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/attention_count.hpp"
#include "outbox/observer.hpp"
#include "outbox/store.hpp"

namespace outboxd {

struct BuildInfo {
    std::string version;
    std::string commit;
};

// What one database's loops tell, and what is sampled from it. Label values come from the
// configuration or from closed sets; a tool that no configuration names counts under `other`.
// statement_done() may be called from any thread.
class SourceMetrics : public outbox::Observer {
 public:
    class Series;
    class Shared;
    explicit SourceMetrics(std::unique_ptr<Series> series, Shared& shared);
    ~SourceMetrics() override;

    void leased(std::size_t batch) override;
    void attempt_started(std::string_view tool, std::chrono::nanoseconds pickup_latency) override;
    void attempt_ended(
        std::string_view tool, const outbox::Outcome& outcome, std::chrono::nanoseconds took
    ) override;
    void became_unknown(std::string_view tool, outbox::Cause cause) override;
    void probed(std::string_view tool, const outbox::Verdict& verdict) override;
    void completed(std::size_t batch) override;
    void fenced(std::string_view tool) override;
    void late_result(std::string_view tool) override;
    void duplicate_effect(std::string_view tool) override;
    void reconciled_pass() override;
    void statement_done(std::string_view statement, std::chrono::nanoseconds took) override;
    void database_error(outbox::StoreError::Kind kind) override;
    void database_up(bool up) override;
    void clock_offset(std::chrono::nanoseconds offset) override;
    void configuration_drift(std::string_view tool, outbox::Drift kind) override;
    // Of the process, whichever source tells it:
    void slots(std::string_view tool, int in_flight, int limit) override;
    void credential_error(std::string_view credential) override;
    void breaker_opened(std::string_view tool) override;
    void breaker_closed(std::string_view tool) override;
    void probe_breaker_opened(std::string_view tool) override;
    void probe_breaker_closed(std::string_view tool) override;
    void paused(std::string_view tool, bool probes, std::chrono::nanoseconds wait) override;

    // The gauges that are sampled from the database; what a sample does not name is zero.
    // A tool that this configuration does not name has series of its own while another daemon
    // serves it, and counts under `other` otherwise: those are the ones that nobody serves.
    void set_samples(std::span<const outbox::ToolSample> samples);
    // What waits for a person, of the same tools.
    void set_attention(const std::vector<outbox::AttentionCount>& counts);
    void set_horizon_age(std::chrono::duration<double> age);
    // Adds what a roll-up of this daemon counted. Named: the tools of the catalogue.
    void add_tallies(std::span<const outbox::ToolTally> tallies);

 private:
    friend class Metrics;
    std::unique_ptr<Series> series_;
    Shared& shared_;
};

// Every metric of contract/cli.md, registered at the start, in the Prometheus text format. With
// several sources, what comes of a database carries the label `source` throughout; with one, only
// the series that the contract gives it to. serialize() may be called from any thread.
class Metrics {
 public:
    // sources: the names of the databases (their namespaces), at least one.
    Metrics(
        const std::vector<std::string>& tools,
        const std::vector<std::string>& sources,
        const BuildInfo& build
    );
    ~Metrics();

    [[nodiscard]] SourceMetrics& of(std::size_t source) { return *sources_.at(source); }

    // After a reload: series of new tools. Those of removed tools stay, as counters must.
    void add_tools(const std::vector<std::string>& tools);
    // The same for credentials.
    void add_credentials(const std::vector<std::string>& credentials);
    void config_reloaded(bool ok);

    [[nodiscard]] std::string serialize() const;

 private:
    std::unique_ptr<SourceMetrics::Shared> shared_;
    std::vector<std::unique_ptr<SourceMetrics>> sources_;
};

}  // namespace outboxd
