#pragma once

#include <optional>
#include <string>

#include "tools/http_client.hpp"

namespace tools {

// What may not go on the wire: CR, LF, NUL and other controls anywhere in the head, framing headers
// that are the client's own. Empty when the request is fine, else a sentence for a person.
[[nodiscard]] std::optional<std::string> check_request(const HttpRequest& request);

// Request line and headers, up to and including the empty line. With a proxy, whom the request is
// handed to, the target is the whole address.
[[nodiscard]] std::string request_head(
    const HttpRequest& request, const HttpProxy* proxy = nullptr
);
// What asks a proxy for a tunnel to the origin.
[[nodiscard]] std::string connect_head(const Origin& origin, const HttpProxy& proxy);

// "desk.example.com:443", "[::1]:8080": for messages.
[[nodiscard]] std::string to_text(const Origin& origin);

// Equal header names: ASCII letters without regard to case.
[[nodiscard]] bool same_name(std::string_view a, std::string_view b);

}  // namespace tools
