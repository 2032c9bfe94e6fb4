#pragma once

#include <string>
#include <vector>

#include "outbox/pg/session.hpp"

namespace outbox::pg {

// JSON arrays of these ids, each short enough for one notification.
[[nodiscard]] std::vector<std::string> done_payloads(const std::vector<std::string>& ids);

// Notifies outbox_done about operations whose end has been committed. A hint: a failure is
// swallowed, for what was written is written, and its fate must be told.
void announce(Session& session, const std::vector<std::string>& ids);

}  // namespace outbox::pg
