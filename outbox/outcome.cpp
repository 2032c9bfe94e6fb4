#include "outbox/outcome.hpp"

#include <array>

namespace outbox {
namespace {

// In the order of the variants.
constexpr std::array<std::string_view, 6> kOutcomes = {
    "succeeded",
    "accepted",
    "rejected",
    "retry",
    "unknown",
    "attention",
};
constexpr std::array<std::string_view, 5> kVerdicts = {
    "found",
    "absent",
    "pending",
    "conflict",
    "inconclusive",
};
static_assert(std::variant_size_v<Outcome> == kOutcomes.size());
static_assert(std::variant_size_v<Verdict> == kVerdicts.size());

}  // namespace

std::string_view to_string(Cause cause) {
    switch (cause) {
        case Cause::timeout:
            return "timeout";
        case Cause::reset:
            return "reset";
        case Cause::status:
            return "status";
        case Cause::unreadable:
            return "unreadable";
        case Cause::exit_code:
            return "exit_code";
        case Cause::killed:
            return "killed";
        case Cause::lease_expired:
            return "lease_expired";
        case Cause::rejected_after_unknown:
            return "rejected_after_unknown";
        case Cause::timeline:
            return "timeline";
        case Cause::mcp:
            return "mcp";
        case Cause::other:
            return "other";
    }
    return {};
}

std::string_view outcome_name(const Outcome& outcome) {
    return kOutcomes[outcome.index()];
}
std::string_view verdict_name(const Verdict& verdict) {
    return kVerdicts[verdict.index()];
}

}  // namespace outbox
