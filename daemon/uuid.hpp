#pragma once

#include <string>

namespace outboxd {

// A random UUID (version 4), lower case with dashes.
[[nodiscard]] std::string make_uuid();

}  // namespace outboxd
