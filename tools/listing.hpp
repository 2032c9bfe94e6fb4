#pragma once

#include <optional>
#include <string>

#include "config/config.hpp"
#include "outbox/outcome.hpp"
#include "tools/condition.hpp"
#include "tools/extraction.hpp"
#include "tools/pagination.hpp"

namespace tools {

// A look-up by listing: one match is found, two are a conflict, none in a complete listing is
// absent. Compiled; a ListingSearch runs it.
struct Listing {
    std::string items;  // pointer to the array
    PointerConditions match;
    std::optional<PointerConditions> must_equal;
    std::optional<Extraction> result;
    std::optional<Pagination> pagination;

    // Empty when there is no items:. Mistakes are reported.
    static std::optional<Listing> compile(
        const config::Listing& listing, AnswerKind kind, CompileContext& context
    );
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;
};

// The request that a page of a listing answers, as far as a search has to know it.
class PageRequest {
 public:
    virtual ~PageRequest() = default;
    // A parameter of it by name, as text.
    [[nodiscard]] virtual std::optional<std::string> parameter(std::string_view name) const = 0;
    // What asks for the next page; empty: it would lead elsewhere.
    [[nodiscard]] virtual std::optional<std::string> next(
        const Pagination& pagination, const std::string& value
    ) const = 0;
    // Whether that is this very page again.
    [[nodiscard]] virtual bool is_same(const std::string& next) const = 0;
};

// Whether found is the same as sent: the must_equal: of a reconcile, as a verdict.
[[nodiscard]] std::optional<outbox::Verdict> conflict_with(
    const std::optional<PointerConditions>& must_equal, const outbox::Json& item, const Scope& scope
);

// One search through the pages of a listing. Pure: it reads answers and says what comes next.
class ListingSearch {
 public:
    ListingSearch(const Listing& listing, const Scope& scope) : listing_(listing), scope_(scope) {}

    // The answer to `request`. Empty: next_page() asks for the next page.
    [[nodiscard]] std::optional<outbox::Verdict> read(
        const Answer& answer, const PageRequest& request
    );
    // The listing cannot be read to its end: inconclusive, unless a match was found already.
    [[nodiscard]] outbox::Verdict incomplete(outbox::Error error) const;

    [[nodiscard]] const std::string& next_page() const { return next_page_; }
    [[nodiscard]] int page() const { return page_; }
    [[nodiscard]] const std::string& cursor() const { return cursor_; }

 private:
    [[nodiscard]] std::optional<outbox::Verdict> go_on(
        const Answer& answer, const outbox::Json::Array& items, const PageRequest& request
    );
    [[nodiscard]] outbox::Verdict complete() const;
    // A page that is full to its own limit, or that links to a next one, is not all there is.
    [[nodiscard]] std::optional<outbox::Error> cut_short(
        const Answer& answer, std::size_t items, const PageRequest& request
    ) const;

    const Listing& listing_;
    const Scope& scope_;
    int page_ = 1;
    std::size_t seen_ = 0;
    std::optional<outbox::Json> matched_;
    std::optional<outbox::Verdict> verdict_of_match_;
    std::string next_page_;
    std::string cursor_;
};

}  // namespace tools
