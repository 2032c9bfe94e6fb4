#include "tools/listing.hpp"

#include <array>
#include <charconv>

#include "tools/link_header.hpp"
#include "tools/pointer.hpp"

namespace tools {
namespace {

using outbox::Error;
using outbox::Json;
using outbox::Verdict;

Error inconclusive(std::string code, std::string message) {
    return {.code = std::move(code), .message = std::move(message)};
}

}  // namespace

std::optional<Listing> Listing::compile(
    const config::Listing& request, AnswerKind kind, CompileContext& context
) {
    auto& diagnostics = context.diagnostics;
    if (!request.items) return std::nullopt;
    Listing listing;
    listing.items = request.items->value;
    check_pointer(listing.items, request.items->mark, diagnostics);
    if (request.match) {
        listing.match = PointerConditions::compile(
            *request.match, "match", PointerConditions::Optional::forbidden, context
        );
    } else {
        diagnostics.error(
            request.items->mark,
            "items without match: nothing tells our item from the others",
            "for instance match: { /external_ref: \"{{ operation.key }}\" }"
        );
    }
    if (request.must_equal) {
        listing.must_equal = PointerConditions::compile(
            *request.must_equal, "must_equal", PointerConditions::Optional::allowed, context
        );
    }
    if (request.result) listing.result = Extraction::compile(*request.result, diagnostics);
    if (request.paginate)
        listing.pagination = Pagination::compile(*request.paginate, kind, context);
    return listing;
}

std::optional<Error> Listing::check(const Scope& scope) const {
    if (auto error = match.check(scope)) return error;
    if (must_equal) {
        if (auto error = must_equal->check(scope)) return error;
    }
    return pagination ? pagination->check(scope) : std::nullopt;
}

std::optional<Verdict> conflict_with(
    const std::optional<PointerConditions>& must_equal, const Json& item, const Scope& scope
) {
    if (!must_equal) return std::nullopt;
    const auto pointer = must_equal->first_broken(item, scope);
    if (!pointer) return std::nullopt;
    return outbox::Conflict{
        {.code = "different",
         .message = "what was found differs at " + *pointer + " from what was to be done"}
    };
}

std::optional<Verdict> ListingSearch::read(const Answer& answer, const PageRequest& request) {
    const auto* found = answer.body ? answer.body->at_pointer(listing_.items) : nullptr;
    const auto* items = found == nullptr ? nullptr : found->as_array();
    if (items == nullptr) {
        if (answer.truncated) {
            return incomplete(
                inconclusive("unreadable", "the listing is longer than limits.response")
            );
        }
        return incomplete(inconclusive(
            "unreadable",
            answer.body ? "the listing has no array at " + listing_.items : "the listing is no JSON"
        ));
    }
    seen_ += items->size();
    for (const auto& item : *items) {
        if (!listing_.match.hold(item, scope_)) continue;
        // Pages may overlap when something was added meanwhile: the same item is no second one.
        if (matched_ && matched_->equals(item)) continue;
        if (matched_) {
            return outbox::Conflict{
                {.code = "found_twice", .message = "the look-up found it more than once"}
            };
        }
        matched_ = item;
        verdict_of_match_ = conflict_with(listing_.must_equal, item, scope_);
        if (verdict_of_match_) continue;
        Extraction::Extracted result;
        if (listing_.result) result = listing_.result->extract(answer, &item);
        verdict_of_match_ = outbox::Found{std::move(result.value), std::move(result.note)};
    }
    return go_on(answer, *items, request);
}

std::optional<Verdict> ListingSearch::go_on(
    const Answer& answer, const Json::Array& items, const PageRequest& request
) {
    if (!listing_.pagination) {
        if (auto error = cut_short(answer, items.size(), request))
            return incomplete(std::move(*error));
        return complete();
    }
    const auto& pagination = *listing_.pagination;
    const auto next = pagination.next(answer, items, seen_, page_, scope_);
    if (!next.more) return complete();
    if (!next.lost.empty()) return incomplete(inconclusive("listing_incomplete", next.lost));
    if (page_ >= pagination.max_pages()) {
        return incomplete(inconclusive(
            "page_limit", "the listing goes on after " + std::to_string(page_) + " pages"
        ));
    }
    const auto target = request.next(pagination, next.value);
    if (!target) {
        return incomplete(inconclusive("foreign_page", "the next page lies on another origin"));
    }
    if (request.is_same(*target)) {
        return incomplete(inconclusive("listing_incomplete", "the next page is the same page again")
        );
    }
    next_page_ = *target;
    cursor_ = next.value;
    ++page_;
    return std::nullopt;
}

Verdict ListingSearch::complete() const {
    if (verdict_of_match_) return *verdict_of_match_;
    return outbox::Absent{};
}

Verdict ListingSearch::incomplete(Error error) const {
    // It happened, that much is certain; only a second one could not be ruled out.
    if (verdict_of_match_) {
        auto verdict = *verdict_of_match_;
        if (auto* found = std::get_if<outbox::Found>(&verdict)) {
            if (!found->note.empty()) found->note += "; ";
            found->note += "the rest of the listing was not read: " + error.message;
        }
        return verdict;
    }
    return outbox::Inconclusive{std::move(error)};
}

std::optional<Error> ListingSearch::cut_short(
    const Answer& answer, std::size_t items, const PageRequest& request
) const {
    constexpr std::array kLimits = {
        "limit",
        "per_page",
        "page_size",
        "pageSize",
        "maxResults",
        "max_results",
        "first",
        "top",
        "$top",
        "count",
        "size"
    };
    if (matched_) return std::nullopt;
    for (const auto& [name, value] : answer.headers) {
        if (same_header_name(name, "link") && next_link(value)) {
            return inconclusive(
                "listing_incomplete", "the listing links to a next page; reconcile needs paginate"
            );
        }
    }
    for (const auto* name : kLimits) {
        const auto limit = request.parameter(name);
        if (!limit) continue;
        std::size_t number = 0;
        const auto parsed = std::from_chars(limit->data(), limit->data() + limit->size(), number);
        if (parsed.ec == std::errc{} && number > 0 && items >= number) {
            return inconclusive(
                "listing_incomplete",
                "the page is full (" + std::string(name) + "=" + *limit +
                    ") of items that do not match; reconcile needs paginate or a sharper query"
            );
        }
    }
    return std::nullopt;
}

}  // namespace tools
