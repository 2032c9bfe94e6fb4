#pragma once

#include <span>
#include <string_view>

#include "daemon/admin_server.hpp"

namespace outboxd {

// One file of daemon/page, embedded by its CMake script: nothing to install beside the binary.
struct PageFile {
    std::string_view name;  // index.html
    std::string_view text;
};
[[nodiscard]] std::span<const PageFile> page_files();

// The operator page: index.html at /, the others under /page/. A static shell that holds no data;
// what it shows comes from /api/v1, which asks for the token.
void serve_page_on(AdminServer& server);

}  // namespace outboxd
