#pragma once

#include "config/config.hpp"

namespace config {

// The same configuration with *** for every secret: the credentials', what ${file:} and ${cred:}
// brought into a request, and what headers, parameters, members and variables of a sensitive name
// hold. Whatever is made of it can be shown.
[[nodiscard]] Config without_secrets(Config config);

}  // namespace config
