#include "outbox/transition.hpp"

namespace outbox {

std::string_view to_string(AttentionReason reason) {
    switch (reason) {
        case AttentionReason::manual:
            return "manual";
        case AttentionReason::conflict:
            return "conflict";
        case AttentionReason::hold:
            return "hold";
        case AttentionReason::give_up:
            return "give_up";
        case AttentionReason::provider:
            return "provider";
        case AttentionReason::late_effect:
            return "late_effect";
        case AttentionReason::duplicate_effect:
            return "duplicate_effect";
    }
    return {};
}

std::string_view to_string(EventKind kind) {
    switch (kind) {
        case EventKind::replayed:
            return "replayed";
        case EventKind::retry:
            return "retry";
        case EventKind::failed:
            return "failed";
        case EventKind::succeeded:
            return "succeeded";
        case EventKind::released:
            return "released";
        case EventKind::unknown:
            return "unknown";
        case EventKind::lease_expired:
            return "lease_expired";
        case EventKind::probe:
            return "probe";
        case EventKind::attention:
            return "attention";
        case EventKind::resolved:
            return "resolved";
        case EventKind::acknowledged:
            return "acknowledged";
        case EventKind::cancelled:
            return "cancelled";
        case EventKind::retried:
            return "retried";
        case EventKind::late_result:
            return "late_result";
        case EventKind::timeline:
            return "timeline";
        case EventKind::result_lost:
            return "result_lost";
    }
    return {};
}

}  // namespace outbox
