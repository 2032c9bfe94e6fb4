#include "daemon/page.hpp"

#include <string>

namespace outboxd {

namespace {

std::string_view type_of(std::string_view name) {
    if (name.ends_with(".html")) return "text/html; charset=utf-8";
    if (name.ends_with(".css")) return "text/css; charset=utf-8";
    if (name.ends_with(".svg")) return "image/svg+xml";
    return "text/javascript; charset=utf-8";
}

// The files live as long as the program.
asio::awaitable<ServerResponse> answer(const PageFile& file) {
    ServerResponse response;
    response.content_type = type_of(file.name);
    response.body = file.text;
    co_return response;
}

}  // namespace

void serve_page_on(AdminServer& server) {
    for (const auto& file : page_files()) {
        const bool index = file.name == "index.html";
        server.add(
            {.method = "GET",
             .path = index ? "/" : "/page/" + std::string(file.name),
             .access = Access::open,
             .handler = [&file](const ServerRequest&) { return answer(file); }}
        );
    }
}

}  // namespace outboxd
