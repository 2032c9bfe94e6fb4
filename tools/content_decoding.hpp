#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "tools/http_client.hpp"

namespace tools {

// Undoes the Content-Encoding of a body: gzip, and deflate for servers that use it unasked. No more
// than `limit` bytes are made, however little there was: what would be longer is cut and marked
// truncated. Other encodings stay as they are. Not empty: the body is damaged, and how.
[[nodiscard]] std::optional<std::string> decode_content(HttpResponse& response, std::size_t limit);

}  // namespace tools
