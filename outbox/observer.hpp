#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <string_view>

#include "outbox/outcome.hpp"
#include "outbox/store.hpp"

namespace outbox {

// What the loops tell the metrics. Called on the io thread only; statement_done may be called
// from any lane's thread and must be thread-safe.
class Observer {
 public:
    virtual ~Observer() = default;
    virtual void leased(std::size_t batch) = 0;
    virtual void attempt_started(
        std::string_view tool, std::chrono::nanoseconds pickup_latency
    ) = 0;
    virtual void attempt_ended(
        std::string_view tool, const Outcome& outcome, std::chrono::nanoseconds took
    ) = 0;
    virtual void became_unknown(std::string_view tool, Cause cause) = 0;
    virtual void probed(std::string_view tool, const Verdict& verdict) = 0;
    virtual void completed(std::size_t batch) = 0;
    virtual void fenced(std::string_view tool) = 0;
    virtual void late_result(std::string_view tool) = 0;
    virtual void duplicate_effect(std::string_view tool) = 0;
    virtual void reconciled_pass() = 0;  // a pass of the reconciler ended well
    virtual void slots(std::string_view tool, int in_flight, int limit) = 0;
    virtual void statement_done(std::string_view statement, std::chrono::nanoseconds took) = 0;
    virtual void database_error(StoreError::Kind kind) = 0;
    virtual void database_up(bool up) = 0;
    // The database's clock minus this machine's.
    virtual void clock_offset(std::chrono::nanoseconds) {}
    // The other side refused it, or no token was to be had for it.
    virtual void credential_error(std::string_view /*credential*/) {}
    virtual void breaker_opened(std::string_view /*tool*/) {}
    virtual void breaker_closed(std::string_view /*tool*/) {}
    virtual void probe_breaker_opened(std::string_view /*tool*/) {}
    virtual void probe_breaker_closed(std::string_view /*tool*/) {}
    // The other side asked to wait: no attempts (probes) of the tool start for so long from now.
    virtual void paused(
        std::string_view /*tool*/, bool /*probes*/, std::chrono::nanoseconds /*wait*/
    ) {}
    // At a start or a reload: the configuration of a tool does not agree with work under way.
    virtual void configuration_drift(std::string_view /*tool*/, Drift) {}
};

// Counts what a loop tolerated and tries again; anything but a StoreError is a fault of ours.
inline void count_error(Observer& observer, const std::exception& error) {
    const auto* store_error = dynamic_cast<const StoreError*>(&error);
    observer.database_error(store_error != nullptr ? store_error->kind() : StoreError::Kind::bug);
}

}  // namespace outbox
