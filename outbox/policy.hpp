#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace outbox {

enum class Effect {
    write,  // has a side effect: an end nobody saw is unknown
    read,   // has none: an end nobody saw is simply tried again
};

struct RetryPolicy {
    int max_attempts = 8;
    std::chrono::milliseconds initial{2'000};
    std::chrono::milliseconds max{300'000};
    double multiplier = 2;
    double jitter = 0.5;  // share of the delay that is random: 0 is none, 1 is all of it
    std::chrono::milliseconds give_up_after{86'400'000};  // from the first attempt
};

enum class AfterAbsent {
    retry,  // a believed "did not happen" is tried again
    hold,   // … waits for a person
};

struct ReconcilePolicy {
    bool manual = false;                       // only a person can tell; why is in the tool's file
    bool resend = false;                       // asked by the request itself, under the same key
    std::chrono::milliseconds settle{10'000};  // after the hard deadline, before absent counts
    int confirmations = 1;                     // absent verdicts needed
    std::chrono::milliseconds interval{15'000};
    std::chrono::milliseconds max_interval{600'000};
    std::chrono::milliseconds give_up_after{86'400'000};  // from becoming unknown
    AfterAbsent after_absent = AfterAbsent::retry;
};

// How an operation id becomes the provider's idempotency key (provider_key.hpp).
struct KeySettings {
    enum class Encoding { hex, uuid, base64url, base32hex, short_ };
    Encoding encoding = Encoding::hex;
    std::string prefix;
    std::size_t max_length = 255;
    // How long the provider remembers the key; empty: forever.
    std::optional<std::chrono::milliseconds> window = std::chrono::milliseconds{86'400'000};
};

// What the loops need to know of a tool; everything else is the adapter's own business.
struct ToolPolicy {
    std::string name;
    std::string description;
    Effect effect = Effect::write;
    // Its effect lies in the outbox's own database: a success is recorded in the same transaction.
    bool own_transaction = false;
    std::chrono::milliseconds timeout{20'000};  // hard end of one attempt, connect included
    int concurrency = 0;                        // attempts in flight; 0: only the worker's limit
    std::optional<double> rate_per_second;      // token bucket of this daemon
    RetryPolicy retry;
    ReconcilePolicy reconcile;
    KeySettings key;
    // Hash of what an attempt asks and how it is looked for (execute target, credential name, key
    // settings, reconcile). Stored with the first attempt: "absent" under another hash is
    // inconclusive.
    std::int64_t request_hash = 0;
    std::string revision;  // hash of the whole tool configuration, for the catalogue
    std::vector<std::string> dedup_fields;   // members that make the derived id; empty: all
    std::vector<std::string> compensations;  // names of its compensations
    bool compensation = false;               // this one undoes operations of another tool
    // What its templates name of the original: "arguments", "result"; empty for other tools.
    std::vector<std::string> needs_original;
    std::string arguments_schema;  // JSON Schema text, empty when none

    // An attempt whose end nobody saw may have had an effect.
    [[nodiscard]] bool leaves_doubt() const { return effect == Effect::write && !own_transaction; }
};

}  // namespace outbox
