#pragma once

#include <memory>
#include <optional>

#include "tools/adapter.hpp"
#include "tools/http_sender.hpp"
#include "tools/lane_reporter.hpp"
#include "tools/listing.hpp"
#include "tools/request_template.hpp"
#include "tools/rules.hpp"

namespace tools {

// reconcile: { type: http }, compiled: ordered verdicts, then a listing.
struct HttpLookup {
    RequestTemplate request;
    VerdictRules verdicts;
    std::optional<Listing> listing;
    std::optional<PointerConditions> must_equal;  // of a single resource that was found

    static std::optional<HttpLookup> compile(
        const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
    );
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;
};

// Asks over HTTP. Whatever goes wrong is inconclusive, never absent.
class HttpProbe final : public Probe {
 public:
    HttpProbe(HttpLookup lookup, std::shared_ptr<HttpSender> sender, LaneReporter reporter = {})
        : lookup_(std::move(lookup)), sender_(std::move(sender)), reporter_(std::move(reporter)) {}

    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline deadline) override;

 private:
    // The verdict of one answer; empty: the search goes on.
    [[nodiscard]] std::optional<outbox::Verdict> read(
        HttpResult result, const HttpRequest& request, const Scope& scope, ListingSearch* search
    ) const;

    HttpLookup lookup_;
    std::shared_ptr<HttpSender> sender_;
    LaneReporter reporter_;
};

}  // namespace tools
