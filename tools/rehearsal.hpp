#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/config.hpp"
#include "outbox/sql_database.hpp"
#include "outbox/tool.hpp"
#include "tools/http_client.hpp"
#include "tools/mcp_answer.hpp"
#include "tools/process_run.hpp"
#include "tools/rendered.hpp"
#include "tools/sent_request.hpp"

namespace tools {

// A tool without the world around it: what it would send, and what it would make of answers. It is
// the daemon's own action and probe over a sender that has no socket and starts no process, so that
// nothing is judged twice in two ways. Secrets are *** in all of it.
class Rehearsal {
 public:
    using Canned = std::variant<HttpResult, ProcessEnd, outbox::SqlEnd, McpEnd>;
    enum class Kind { none, http, command, sql, mcp };

    // `name` as the queue has it: create_ticket:close for a compensation. Empty when there is no
    // such tool, or when it cannot be rehearsed: `why` says so then.
    static std::optional<Rehearsal> of(
        const config::Config& config, const std::string& name, std::string& why
    );
    ~Rehearsal();
    Rehearsal(Rehearsal&&) noexcept;
    Rehearsal& operator=(Rehearsal&&) noexcept;

    // {{ operation.key }} of this id.
    [[nodiscard]] std::string key_of(const std::string& operation_id) const;
    [[nodiscard]] bool write() const;
    // What answers: nobody for log and manual. A resend is looked up as it is executed.
    [[nodiscard]] Kind execute_kind() const;
    [[nodiscard]] Kind lookup_kind() const;

    // The request, or why nothing is sent: a refusal, or not_sent where there is nothing to send.
    [[nodiscard]] Rendered<SentRequest> request(const outbox::ToolCall& call);
    [[nodiscard]] Rendered<SentRequest> lookup(const outbox::ToolCall& call);
    // What becomes of an answer. More pages than given: the rest fails as a time-out would.
    [[nodiscard]] outbox::Outcome outcome(const outbox::ToolCall& call, Canned answer);
    [[nodiscard]] outbox::Verdict verdict(const outbox::ToolCall& call, std::vector<Canned> pages);
    // Answers of the last verdict that nobody asked for.
    [[nodiscard]] std::size_t unread() const;

 private:
    struct Stage;
    explicit Rehearsal(std::unique_ptr<Stage> stage);
    std::unique_ptr<Stage> stage_;
};

}  // namespace tools
