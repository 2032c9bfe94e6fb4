#include "outbox/traceparent.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <random>

namespace outbox {
namespace {

// version-, 32 digits of the trace, -, 16 of the span, -, 2 of the flags
constexpr std::size_t kTrace = 3;
constexpr std::size_t kTraceLength = 32;
constexpr std::size_t kFlags = 53;
constexpr std::size_t kLength = 55;

// Zero is no span id.
std::uint64_t new_span() {
    thread_local std::mt19937_64 random{std::random_device{}() * 0x1'0000'0001ULL};
    for (;;) {
        if (const std::uint64_t span = random(); span != 0) return span;
    }
}

}  // namespace

std::string child_traceparent(std::string_view parent) {
    if (parent.size() < kLength) return std::string(parent);
    // We speak version 00, whatever the parent's is: so says the standard.
    return fmt::format(
        "00-{}-{:016x}-{}",
        parent.substr(kTrace, kTraceLength),
        new_span(),
        parent.substr(kFlags, 2)
    );
}

std::string trace_id(const std::optional<std::string>& traceparent) {
    if (!traceparent || traceparent->size() < kLength) return {};
    return traceparent->substr(kTrace, kTraceLength);
}

}  // namespace outbox
