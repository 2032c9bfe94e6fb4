#include "daemon/output.hpp"

#include <ostream>
#include <stdexcept>
#include <utility>

#include "daemon/table.hpp"

namespace outboxd {

outbox::Json row_of(const std::string& text) {
    auto parsed = outbox::parse_json(text);
    if (!parsed.value) throw std::logic_error("the database sent no JSON: " + parsed.error);
    return std::move(*parsed.value);
}

std::string cell_text(const outbox::Json* value) {
    if (value == nullptr || value->is_null()) return "";
    if (const auto* text = value->as_string()) return *text;
    return outbox::to_text(*value);
}

std::string member_text(const outbox::Json& row, std::string_view name) {
    return cell_text(row.find(name));
}

void print_row(const Context& context, const outbox::Json& row) {
    if (context.json) {
        context.console.out << outbox::to_text(row) << '\n';
        return;
    }
    const auto* members = row.as_object();
    if (members == nullptr || members->empty()) return;
    Table table({members->front().first, cell_text(&members->front().second)});
    for (auto member = members->begin() + 1; member != members->end(); ++member) {
        if (!member->second.is_null()) table.add({member->first, cell_text(&member->second)});
    }
    context.console.out << table.text();
}

void print_answer(const Context& context, const std::string& answer) {
    if (context.json) {
        outbox::Json document;
        document.set("answer", answer);
        context.console.out << outbox::to_text(document) << '\n';
    } else {
        context.console.out << answer << '\n';
    }
}

void print_rows(
    const Context& context,
    std::span<const outbox::Json> rows,
    const std::vector<std::string>& columns
) {
    if (context.json) {
        for (const auto& row : rows) context.console.out << outbox::to_text(row) << '\n';
        return;
    }
    if (rows.empty()) {
        context.console.err << "nothing\n";
        return;
    }
    Table table(columns);
    for (const auto& row : rows) {
        std::vector<std::string> cells;
        for (const auto& column : columns) cells.push_back(member_text(row, column));
        table.add(std::move(cells));
    }
    context.console.out << table.text();
}

}  // namespace outboxd
