#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/http_client.hpp"

namespace tools {

// The target of rel="next" in a Link header (RFC 8288); empty when there is none.
[[nodiscard]] std::optional<std::string> next_link(std::string_view header);

// Path and query of a URL as a listing names it, absolute or relative to the request; empty when
// it is broken or leads to another origin.
[[nodiscard]] std::optional<std::string> same_origin_target(
    const HttpRequest& request, const std::string& url
);

// The target with a query parameter set, replacing one of that name.
[[nodiscard]] std::string with_parameter(
    std::string_view target, std::string_view name, std::string_view value
);

// The value of a query parameter, still encoded; empty when it is not there.
[[nodiscard]] std::optional<std::string> parameter(std::string_view target, std::string_view name);

}  // namespace tools
