#pragma once

#include <optional>
#include <string>

#include "outbox/pg/session.hpp"
#include "outbox/store.hpp"

namespace outbox::pg {

// Lets leases (and probes, and the end of what expired) through only where everything that was open
// when the database came back on another timeline (failover, restore) is unknown first;
// sql/queries/settle_timeline.sql says why nothing slips through. Lives on one lane. A direct
// session is checked once, when it is new; through a pooler the server may change under the
// session, so there each statement's own transaction is.
class TimelineGuard {
 public:
    // The statement's rows, or nothing while a change is not settled yet: come again. Throws
    // StoreError, unavailable on a standby.
    std::optional<pqxx::result> write(
        Session& session, const std::string& text, const Parameters& parameters
    );

    // What was settled since the last call.
    std::optional<TimelineChange> take_change();

 private:
    bool settle(Session& session);

    std::optional<TimelineChange> change_;
};

}  // namespace outbox::pg
