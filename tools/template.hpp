#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/value.hpp"
#include "outbox/json.hpp"
#include "tools/compile_context.hpp"
#include "tools/filter.hpp"
#include "tools/rendered.hpp"
#include "tools/scope.hpp"

namespace tools {

// One {{ path | filter | … }}.
struct Expression {
    std::string source;  // between the braces, trimmed; for messages
    std::vector<std::string> path;
    std::vector<Filter> filters;

    [[nodiscard]] bool optional() const;
    // Its value; nothing when it is missing and optional.
    [[nodiscard]] Rendered<std::optional<outbox::Json>> value(const Scope& scope) const;
    // Its value as text. Arrays and objects are refused: `| json` or `| join` says how.
    [[nodiscard]] Rendered<std::optional<std::string>> text(const Scope& scope) const;
};

// Writes a value into its place: percent_encode in a URL. Empty: as it is.
using Encode = std::string (*)(std::string_view);

// A text of the configuration, compiled once when the file loads. Rendering is one pass: what a
// value contains is never a template.
class Template {
 public:
    struct Piece {
        std::string literal;  // when there is no expression
        std::optional<Expression> expression;
    };

    Template() = default;
    explicit Template(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
    static Template literal(std::string text);
    // Mistakes go to the context's diagnostics; what is returned then is not for rendering.
    static Template compile(const config::Text& text, CompileContext& context);
    // For places without an escaping of their own: every template must end with a filter that
    // names it.
    static Template compile_escaped(const config::Text& text, CompileContext& context);

    [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
    [[nodiscard]] bool has_expressions() const;
    [[nodiscard]] bool optional() const;
    [[nodiscard]] bool starts_with_expression() const;

    // Exactly one expression keeps its JSON type, mixed text becomes a string. Nothing: an
    // optional value is missing, and the member is to be left out.
    [[nodiscard]] Rendered<std::optional<outbox::Json>> render_value(const Scope& scope) const;
    [[nodiscard]] Rendered<std::optional<std::string>> render_text(
        const Scope& scope, Encode encode = nullptr
    ) const;
    // An optional value that is missing becomes empty text; for bodies, where nothing can be
    // left out.
    [[nodiscard]] Rendered<std::string> render_body(const Scope& scope) const;

 private:
    std::vector<Piece> pieces_;
};

}  // namespace tools
