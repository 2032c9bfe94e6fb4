#pragma once

#include <string>
#include <string_view>

namespace outbox::pg {

// The connection string (keywords or URI) with our defaults in front, so that whatever the
// operator wrote wins: a name in pg_stat_activity, and an end to waiting for a server that is gone.
[[nodiscard]] std::string with_defaults(std::string_view dsn);

}  // namespace outbox::pg
