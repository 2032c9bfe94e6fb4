#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/command.hpp"
#include "outbox/json.hpp"

namespace outboxd {

// Rows come from the database as JSON objects whose members are the columns, in order.
[[nodiscard]] outbox::Json row_of(const std::string& text);

// One row: a JSON document, or "name  value" lines without the empty ones.
void print_row(const Context& context, const outbox::Json& row);

// The word that a function of the contract answers: as it is, or {"answer": WORD}.
void print_answer(const Context& context, const std::string& answer);

// A list: one JSON document a line, or a table of the given columns.
void print_rows(
    const Context& context,
    std::span<const outbox::Json> rows,
    const std::vector<std::string>& columns
);

// A cell for people: text without quotes, "" for null, everything else as JSON.
[[nodiscard]] std::string cell_text(const outbox::Json* value);

// The member's text; empty when it is missing or null.
[[nodiscard]] std::string member_text(const outbox::Json& row, std::string_view name);

}  // namespace outboxd
