#pragma once

#include <string>
#include <string_view>

#include "outbox/json.hpp"

// What agents are told: the result of tools/call. Pure. Its text is the receipt's sentence, its
// structured content the receipt, with one word more: which of five truths it is.
namespace outboxd::mcp {

// succeeded: it happened. rejected: it did not, and will not by itself. pending: it will be tried.
// unknown: it may have happened, we are asking. needs_attention: the same, and a person is asked.
[[nodiscard]] std::string_view truth_of(const outbox::Json& row);

// The schema that structuredContent fits, whatever the tool and the answer.
[[nodiscard]] outbox::Json output_schema();

// Of a row of enqueue, compensate or get. isError only where nothing happened and nothing will.
[[nodiscard]] outbox::Json answer_of(const outbox::Json& row);
// Nothing was recorded: why, and the way out. Status refused.
[[nodiscard]] outbox::Json refusal(std::string_view message);
// It may have been recorded: the database went away during the commit. The id may be empty.
[[nodiscard]] outbox::Json in_doubt(const std::string& operation_id);
// A look that could not be made says nothing about the action.
// A look that found nothing it may show.
[[nodiscard]] outbox::Json unseen(std::string_view operation_id);
[[nodiscard]] outbox::Json out_of_sight(const std::string& operation_id);

// What a progress notification says meanwhile.
[[nodiscard]] std::string_view progress_of(std::string_view status);

}  // namespace outboxd::mcp
