#include "tools/http_probe.hpp"

#include <utility>

#include "tools/http_tool.hpp"
#include "tools/link_header.hpp"

namespace tools {
namespace {

using outbox::Inconclusive;
using outbox::Verdict;

class HttpPage final : public PageRequest {
 public:
    explicit HttpPage(const HttpRequest& request) : request_(request) {}
    [[nodiscard]] std::optional<std::string> parameter(std::string_view name) const override {
        return tools::parameter(request_.target, name);
    }
    [[nodiscard]] std::optional<std::string> next(
        const Pagination& pagination, const std::string& value
    ) const override {
        return pagination.target(request_, value);
    }
    [[nodiscard]] bool is_same(const std::string& next) const override {
        return next == request_.target;
    }

 private:
    const HttpRequest& request_;
};

}  // namespace

std::optional<HttpLookup> HttpLookup::compile(
    const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
) {
    context.paginated = request.paginate.has_value();
    auto compiled = RequestTemplate::compile(request, credentials, context);
    context.paginated = false;
    auto verdicts = VerdictRules::compile(request.rules, AnswerKind::http, request.result, context);
    auto listing = Listing::compile(request, AnswerKind::http, context);
    if (!listing && verdicts.empty()) {
        context.diagnostics.error(
            request.mark,
            "reconcile says neither verdicts nor items: nothing would ever be found",
            "items: and match: for a listing, verdicts: for a single resource"
        );
    }
    if (!listing && (request.match || request.paginate)) {
        context.diagnostics.error(
            request.mark,
            "match and paginate belong to a listing, and items is missing",
            "items: is the pointer to the array, for instance /tickets"
        );
    }
    std::optional<PointerConditions> must_equal;
    if (!listing && request.must_equal) {
        must_equal = PointerConditions::compile(
            *request.must_equal, "must_equal", PointerConditions::Optional::allowed, context
        );
    }
    if (!compiled) return std::nullopt;
    return HttpLookup{
        std::move(*compiled), std::move(verdicts), std::move(listing), std::move(must_equal)
    };
}

std::optional<outbox::Error> HttpLookup::check(const Scope& scope) const {
    if (auto error = verdicts.check(scope)) return error;
    if (listing) return listing->check(scope);
    return must_equal ? must_equal->check(scope) : std::nullopt;
}

std::optional<Verdict> HttpProbe::read(
    HttpResult result, const HttpRequest& request, const Scope& scope, ListingSearch* search
) const {
    const bool first_page = search == nullptr || search->page() == 1;
    if (auto* failure = std::get_if<HttpFailure>(&result)) {
        if (search != nullptr) return search->incomplete(std::move(failure->error));
        return Inconclusive{std::move(failure->error)};
    }
    const auto answer = to_answer(std::move(std::get<HttpResponse>(result)));
    // Verdicts speak about the look-up itself: "404 is absent" must not be said of page three.
    if (first_page) {
        auto verdict = lookup_.verdicts.match(answer, scope);
        if (verdict && std::holds_alternative<outbox::Found>(*verdict) && lookup_.must_equal) {
            const outbox::Json nothing;
            auto conflict =
                conflict_with(lookup_.must_equal, answer.body ? *answer.body : nothing, scope);
            if (conflict && answer.unreadable()) {
                return Inconclusive{{.code = "unreadable", .message = "the answer is no JSON"}};
            }
            if (conflict) return conflict;
        }
        if (verdict) return verdict;
    }
    // Only 200 is a whole listing: 206 is a part of one, 202 comes before it, 203 is somebody
    // else's.
    const bool good = answer.status == 200;
    if (search != nullptr && good) return search->read(answer, HttpPage(request));
    auto error = describe(answer);
    if (good) error.message = "an answer that no verdict describes: " + error.message;
    if (search != nullptr) return search->incomplete(std::move(error));
    return Inconclusive{std::move(error)};
}

asio::awaitable<Verdict> HttpProbe::ask(outbox::ToolCall call, outbox::Deadline deadline) {
    Page page;
    const Scope scope{call, &page};
    if (auto error = lookup_.check(scope)) co_return Inconclusive{std::move(*error)};
    std::optional<ListingSearch> search;
    if (lookup_.listing) search.emplace(*lookup_.listing, scope);
    auto* listing = search ? &*search : nullptr;
    bool renewed = false;
    for (;;) {
        auto rendered = lookup_.request.render(scope);
        if (!rendered.ok()) co_return Inconclusive{rendered.error()};
        auto request = std::move(rendered.value());
        if (listing != nullptr && !listing->next_page().empty()) {
            lookup_.request.retarget(request, listing->next_page());
        }
        hand_on_trace(request, call);
        const auto sent = request;
        auto sending = sender_->send(std::move(request), deadline);
        auto result = co_await std::move(sending);
        if (token_was_stale(result) && !std::exchange(renewed, true)) continue;
        reporter_.tell(of_lookup(lane_signal(result)));
        if (auto verdict = read(std::move(result), sent, scope, listing))
            co_return std::move(*verdict);
        page = {.number = listing->page(), .cursor = listing->cursor()};
    }
}

}  // namespace tools
