#include "tools/template.hpp"

#include <algorithm>
#include <utility>

#include "tools/expression_parser.hpp"

namespace tools {
namespace {

using outbox::Json;

std::string braces(const Expression& expression) {
    return "{{ " + expression.source + " }}";
}

}  // namespace

bool Expression::optional() const {
    return std::any_of(filters.begin(), filters.end(), [](const Filter& filter) {
        return filter.id == FilterId::optional;
    });
}

Rendered<std::optional<Json>> Expression::value(const Scope& scope) const {
    auto current = lookup(scope, path);
    for (const auto& filter : filters) {
        const bool none = !current || current->is_null();
        if (filter.id == FilterId::default_) {
            if (none) current = filter.literal;
        } else if (filter.id == FilterId::optional) {
            if (!current) return std::optional<Json>{};
        } else if (none && filter.id != FilterId::json) {
            current.reset();  // there is no text in null; a default behind it may still help
        } else if (current) {
            auto next = apply_filter(filter, *current);
            if (!next.ok()) {
                return invalid_argument(braces(*this) + ": " + next.error().message);
            }
            current = std::move(next.value());
        }
    }
    if (!current && optional()) return std::optional<Json>{};
    if (!current) return missing_argument(braces(*this) + " has no value");
    return current;
}

Rendered<std::optional<std::string>> Expression::text(const Scope& scope) const {
    auto rendered = value(scope);
    if (!rendered.ok()) return rendered.error();
    if (!rendered.value()) return std::optional<std::string>{};
    const auto& json = *rendered.value();
    if (json.is_null()) {
        if (optional()) return std::optional<std::string>{};
        return missing_argument(braces(*this) + " is null");
    }
    auto text = scalar_text(json);
    if (!text) {
        return invalid_argument(braces(*this) + " is an array or an object where text is needed");
    }
    return text;
}

Template Template::literal(std::string text) {
    std::vector<Piece> pieces;
    if (!text.empty()) pieces.push_back({std::move(text), std::nullopt});
    return Template(std::move(pieces));
}

Template Template::compile(const config::Text& text, CompileContext& context) {
    std::vector<Piece> pieces;
    const std::string_view all = text.value;
    std::size_t at = 0;
    while (at < all.size()) {
        const auto open = all.find("{{", at);
        if (open != at) pieces.push_back({std::string(all.substr(at, open - at)), std::nullopt});
        if (open == std::string_view::npos) break;
        const auto close = closing_braces(all, open + 2);
        if (close == std::string_view::npos) {
            context.diagnostics.error(
                text.mark,
                "{{ is never closed: " + std::string(all.substr(open, 40)),
                "a template is written {{ path | filter }}"
            );
            break;
        }
        auto expression =
            parse_expression(all.substr(open + 2, close - open - 2), text.mark, context);
        if (expression) pieces.push_back({{}, std::move(expression)});
        at = close + 2;
    }
    return Template(std::move(pieces));
}

Template Template::compile_escaped(const config::Text& text, CompileContext& context) {
    auto compiled = compile(text, context);
    for (const auto& piece : compiled.pieces_) {
        if (!piece.expression) continue;
        const auto& filters = piece.expression->filters;
        const bool named =
            !filters.empty() &&
            std::any_of(filter_kinds().begin(), filter_kinds().end(), [&](const FilterKind& kind) {
                return kind.escapes && kind.id == filters.back().id;
            });
        if (named) continue;
        context.diagnostics.error(
            text.mark,
            braces(*piece.expression) + " does not say how it is escaped",
            "end it with | json, | xml, | ical_text or | raw"
        );
    }
    return compiled;
}

bool Template::has_expressions() const {
    return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) {
        return piece.expression.has_value();
    });
}

bool Template::optional() const {
    return std::any_of(pieces_.begin(), pieces_.end(), [](const Piece& piece) {
        return piece.expression && piece.expression->optional();
    });
}

bool Template::starts_with_expression() const {
    return !pieces_.empty() && pieces_.front().expression.has_value();
}

Rendered<std::optional<Json>> Template::render_value(const Scope& scope) const {
    if (pieces_.size() == 1 && pieces_.front().expression) {
        return pieces_.front().expression->value(scope);
    }
    auto text = render_text(scope);
    if (!text.ok()) return text.error();
    if (!text.value()) return std::optional<Json>{};
    return std::optional<Json>(Json(std::move(*text.value())));
}

Rendered<std::optional<std::string>> Template::render_text(const Scope& scope, Encode encode)
    const {
    std::string out;
    for (const auto& piece : pieces_) {
        if (!piece.expression) {
            out += piece.literal;
            continue;
        }
        auto text = piece.expression->text(scope);
        if (!text.ok() || !text.value()) return text;
        out += encode == nullptr ? *text.value() : encode(*text.value());
    }
    return std::optional<std::string>(std::move(out));
}

Rendered<std::string> Template::render_body(const Scope& scope) const {
    std::string out;
    for (const auto& piece : pieces_) {
        if (!piece.expression) {
            out += piece.literal;
            continue;
        }
        auto text = piece.expression->text(scope);
        if (!text.ok()) return text.error();
        if (text.value()) out += *text.value();
    }
    return out;
}

}  // namespace tools
