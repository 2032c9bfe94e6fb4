#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace outbox {

// A value with a name of its own. There is no implicit way in or back: two ids never mix.
template <class Tag, class Rep>
struct StrongId {
    Rep value{};

    constexpr StrongId() = default;
    constexpr explicit StrongId(Rep v) : value(std::move(v)) {}

    friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

// Joins operation, queue and outcome rows; given by the database in order of insertion.
using Seq = StrongId<struct SeqTag, std::int64_t>;

// Identity of an intent, chosen by the planner or derived (operation_key.hpp).
using OperationId = StrongId<struct OperationIdTag, std::string>;

// One running daemon process: a fresh UUID per start, lower case with dashes.
using WorkerId = StrongId<struct WorkerIdTag, std::string>;

// Counter per operation: every status write compares the epoch it read and sets the next one.
using Epoch = StrongId<struct EpochTag, std::int32_t>;

}  // namespace outbox

template <class Tag, class Rep>
struct std::hash<outbox::StrongId<Tag, Rep>> {
    std::size_t operator()(const outbox::StrongId<Tag, Rep>& id) const {
        return std::hash<Rep>{}(id.value);
    }
};
