#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/http_server.hpp"
#include "outbox/json.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd {

// What a request of the API is refused with: an answer as problem+json whose `detail` is for a
// person and whose further members name the place (parameter, pointer) and the way out (hint).
class ApiProblem : public std::runtime_error {
 public:
    using Members = std::vector<std::pair<std::string, outbox::Json>>;
    ApiProblem(int status, std::string title, const std::string& detail, Members members = {});

    [[nodiscard]] ServerResponse response() const;
    [[nodiscard]] int status() const { return status_; }

 private:
    int status_;
    std::string title_;
    Members members_;
};

// "/api/v1/operations/a%2Fb/retry" → {"operations", "a/b", "retry"}: what follows the prefix, each
// segment decoded on its own, so that an id may hold anything. Throws ApiProblem.
[[nodiscard]] std::vector<std::string> api_path(std::string_view path);

// The filters of the list; unknown parameters are refused.
[[nodiscard]] outbox::pg::ListFilter read_list_query(const ServerRequest& request);
// A path that takes no parameters at all.
void refuse_query(const ServerRequest& request);

// The members of a body, by the names of the SQL function's parameters. Every member must be read:
// finish() refuses the others.
class ApiBody {
 public:
    explicit ApiBody(const std::string& text);

    [[nodiscard]] std::string text(std::string_view name);
    [[nodiscard]] std::optional<std::string> optional_text(std::string_view name);
    [[nodiscard]] int integer(std::string_view name);
    // As JSON text; null is as good as missing.
    [[nodiscard]] std::optional<std::string> json(std::string_view name);
    [[nodiscard]] std::optional<std::string> object(std::string_view name);
    void finish() const;

 private:
    [[nodiscard]] const outbox::Json* take(std::string_view name);

    outbox::Json body_;
    std::vector<std::string> known_;
};

}  // namespace outboxd
