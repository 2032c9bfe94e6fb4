#pragma once

#include <optional>
#include <string>
#include <vector>

namespace outbox::pg {

struct Finding {
    std::string name;
    std::string level;  // ok | warn | bad
    std::string detail;
    std::optional<std::string> fix;  // the way out; empty when it is ok
};

// What the promises rest on, as far as the database can tell: the server's settings, the schema,
// and, where that fits, the outbox itself. Changes nothing. Throws StoreError when the database
// cannot be reached.
[[nodiscard]] std::vector<Finding> examine(const std::string& dsn);

}  // namespace outbox::pg
