#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/value.hpp"
#include "tools/answer.hpp"
#include "tools/number_set.hpp"
#include "tools/value_condition.hpp"

namespace tools {

// Which adapter's answers a condition speaks about.
enum class AnswerKind { http, command, sql, mcp };

enum class Holds {
    no,
    yes,
    undecidable,  // it needs a body that could not be read
};

// One `when:`. All members must hold.
class Condition {
 public:
    static Condition compile(const config::Value& when, AnswerKind kind, CompileContext& context);

    [[nodiscard]] Holds holds(const Answer& answer, const Scope& scope) const;
    // Whether its templates can be rendered for this call.
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;
    // It names a status within from..to.
    [[nodiscard]] bool names_status(int from, int to) const;
    // It takes results that an MCP tool calls an error, and says nothing about which.
    [[nodiscard]] bool takes_any_error() const;
    [[nodiscard]] bool names_rpc_error(int from, int to) const;

 private:
    void compile_member(
        const config::Value::Member& member, AnswerKind kind, CompileContext& context
    );

    std::optional<NumberSet> statuses_;
    std::optional<NumberSet> exit_codes_;
    std::optional<NumberSet> rows_;
    std::optional<NumberSet> rpc_errors_;
    std::optional<bool> is_error_;
    std::optional<ValueCondition> result_type_;
    std::vector<std::pair<std::string, ValueCondition>> headers_;
    std::optional<PointerConditions> body_;
    std::optional<ValueCondition> text_;
};

}  // namespace tools
