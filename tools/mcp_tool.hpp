#pragma once

#include <memory>
#include <optional>

#include "tools/adapter.hpp"
#include "tools/lane_reporter.hpp"
#include "tools/listing.hpp"
#include "tools/mcp_server.hpp"
#include "tools/mcp_template.hpp"
#include "tools/rules.hpp"

namespace tools {

// execute: { type: mcp }, compiled.
struct McpExecute {
    McpTemplate call;
    OutcomeRules outcomes;
    bool has_outcomes = false;

    static std::optional<McpExecute> compile(
        const config::Mcp& mcp, const Credentials& credentials, CompileContext& context
    );
};

// reconcile: { type: mcp }, compiled: ordered verdicts, then a listing.
struct McpLookup {
    McpTemplate call;
    VerdictRules verdicts;
    std::optional<Listing> listing;
    std::optional<PointerConditions> must_equal;  // of a single resource that was found

    static std::optional<McpLookup> compile(
        const config::Mcp& mcp, const Credentials& credentials, CompileContext& context
    );
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;
};

// How an attempt ended: by the rules, then by the defaults. Of errors only those are a definite "no
// effect" that by their meaning come before the tool.
[[nodiscard]] outbox::Outcome judge(const McpExecute& execute, McpEnd end, const Scope& scope);

// An effect by a tool of an MCP server.
class McpAction final : public Action {
 public:
    McpAction(
        std::shared_ptr<const McpExecute> execute,
        std::shared_ptr<McpServer> server,
        outbox::Failpoints& failpoints,
        LaneReporter reporter = {}
    )
        : execute_(std::move(execute)),
          server_(std::move(server)),
          failpoints_(failpoints),
          reporter_(std::move(reporter)) {}

    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall call, outbox::Deadline deadline)
        override;
    [[nodiscard]] bool leaves_handles() const override { return true; }

 private:
    std::shared_ptr<const McpExecute> execute_;
    std::shared_ptr<McpServer> server_;
    outbox::Failpoints& failpoints_;
    LaneReporter reporter_;
};

// Asks a tool of an MCP server. Whatever goes wrong is inconclusive, never absent.
class McpProbe final : public Probe {
 public:
    McpProbe(McpLookup lookup, std::shared_ptr<McpServer> server, LaneReporter reporter = {})
        : lookup_(std::move(lookup)), server_(std::move(server)), reporter_(std::move(reporter)) {}

    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline deadline) override;

 private:
    // The verdict of one answer; empty: the search goes on.
    [[nodiscard]] std::optional<outbox::Verdict> read(
        McpEnd end, const outbox::Json& arguments, const Scope& scope, ListingSearch* search
    ) const;

    McpLookup lookup_;
    std::shared_ptr<McpServer> server_;
    LaneReporter reporter_;
};

}  // namespace tools
