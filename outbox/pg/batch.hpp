#pragma once

#include <optional>
#include <span>
#include <string>

#include "outbox/ids.hpp"
#include "outbox/pg/compat.hpp"
#include "outbox/transition.hpp"

// Transitions → parameters of the statements in sql/queries. Throws StoreError data on NUL.
namespace outbox::pg {

using Batch = std::span<const Transition* const>;

[[nodiscard]] bool is_final(Status status);

[[nodiscard]] Parameters finish_parameters(Batch batch);
// Worker: for the events; empty when nobody said who we are.
[[nodiscard]] Parameters move_parameters(Batch batch, const WorkerId& worker);
[[nodiscard]] Parameters fate_parameters(Batch batch);
[[nodiscard]] Parameters late_parameters(const Transition& late, const WorkerId& worker);

// The same transition with everything the other side worded replaced by a digest: what can always
// be written. A known success never becomes unknown because of its wording.
[[nodiscard]] Transition last_resort(const Transition& transition, const std::string& why);

}  // namespace outbox::pg
