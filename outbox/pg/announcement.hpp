#pragma once

#include <string>
#include <vector>

#include "outbox/pg/session.hpp"
#include "outbox/store.hpp"

namespace outbox::pg {

// JSON arrays of the ids that ended, each short enough for one notification.
[[nodiscard]] std::vector<std::string> done_payloads(
    const std::vector<Transition>& batch, const std::vector<Fate>& fates
);

// Notifies outbox_done about a batch that has been committed. A hint: a failure is swallowed, for
// the batch is written and its fates must be told.
void announce(
    Session& session, const std::vector<Transition>& batch, const std::vector<Fate>& fates
);

}  // namespace outbox::pg
