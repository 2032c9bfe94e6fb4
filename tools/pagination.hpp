#pragma once

#include <optional>
#include <string>

#include "tools/answer.hpp"
#include "tools/condition.hpp"
#include "tools/http_client.hpp"
#include "tools/value_condition.hpp"

namespace tools {

// `paginate:` of a listing: where the next page is named (body:/pointer, header:Name, header:link,
// last:/pointer in the last item, offset, page), where it goes (query:name, url; argument:name of
// an MCP tool), and whether there is one (more:; without it, as long as a next page is named or a
// page was not empty).
class Pagination {
 public:
    static Pagination compile(const config::Value& value, AnswerKind kind, CompileContext& context);

    [[nodiscard]] int max_pages() const { return max_pages_; }
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;

    struct Next {
        bool more = false;
        std::string value;  // cursor, offset, page number or URL of the next page
        std::string lost;   // not empty: there is more, but not a word about where
    };
    // `seen` counts the items of all pages so far, this one's included.
    [[nodiscard]] Next next(
        const Answer& answer,
        const outbox::Json::Array& items,
        std::size_t seen,
        int page,
        const Scope& scope
    ) const;
    // Turns the request of the first page into that of the next; empty: it would lead elsewhere.
    [[nodiscard]] std::optional<std::string> target(
        const HttpRequest& request, const std::string& value
    ) const;
    // Of an MCP tool: the argument that names the page, and its value there.
    [[nodiscard]] const std::string& argument() const { return to_name_; }
    [[nodiscard]] outbox::Json argument_value(const std::string& value) const;

 private:
    enum class From { body, header, link, last, offset, page };

    void compile_from(const config::Value& value, CompileContext& context);
    void compile_to(const config::Value& value, AnswerKind kind, CompileContext& context);
    void compile_max_pages(const config::Value& value, CompileContext& context);
    [[nodiscard]] std::string named_next(
        const Answer& answer, const outbox::Json::Array& items, std::size_t seen, int page
    ) const;

    From from_ = From::body;
    std::string from_name_;
    bool to_url_ = false;
    std::string to_name_;  // of the query parameter or argument
    std::optional<PointerConditions> more_;
    int max_pages_ = 10;
};

}  // namespace tools
