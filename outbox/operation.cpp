#include "outbox/operation.hpp"

namespace outbox {
namespace {

constexpr std::string_view name(Status status) {
    switch (status) {
        case Status::pending:
            return "pending";
        case Status::scheduled:
            return "scheduled";
        case Status::attempting:
            return "attempting";
        case Status::unknown:
            return "unknown";
        case Status::succeeded:
            return "succeeded";
        case Status::failed:
            return "failed";
        case Status::cancelled:
            return "cancelled";
    }
    return {};
}

constexpr std::optional<Status> parse(std::string_view text) {
    for (const auto status : kAllStatuses) {
        if (name(status) == text) return status;
    }
    return std::nullopt;
}

constexpr bool round_trips() {
    for (const auto status : kAllStatuses) {
        if (parse(name(status)) != status) return false;
    }
    return !parse("running");
}
static_assert(round_trips());

}  // namespace

std::string_view to_string(Status status) {
    return name(status);
}
std::optional<Status> parse_status(std::string_view text) {
    return parse(text);
}

}  // namespace outbox
