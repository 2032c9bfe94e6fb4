#include "tools/expression_parser.hpp"

#include <algorithm>
#include <charconv>

#include "config/nearest.hpp"

namespace tools {
namespace {

using outbox::Json;

struct Mistake {
    std::string message;
    std::string hint;
};

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '$' || c == '@' || static_cast<unsigned char>(c) >= 0x80;
}

// Recursive descent over `path | filter(argument) | …`; the first mistake ends it.
class Parser {
 public:
    explicit Parser(std::string_view text) : text_(text) {}

    std::optional<Expression> parse() {
        Expression expression;
        expression.path = path();
        while (!mistake_ && accept('|')) expression.filters.push_back(filter());
        if (!mistake_ && !at_end()) fail("unexpected \"" + rest() + "\"", kShape);
        if (mistake_) return std::nullopt;
        return expression;
    }
    [[nodiscard]] const std::optional<Mistake>& mistake() const { return mistake_; }

 private:
    static constexpr const char* kShape = "a template is written {{ path | filter }}";

    void skip_space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                                      text_[at_] == '\n' || text_[at_] == '\r')) {
            ++at_;
        }
    }
    bool at_end() {
        skip_space();
        return at_ == text_.size();
    }
    bool accept(char c) {
        skip_space();
        if (at_ == text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    std::string rest() const { return std::string(text_.substr(at_, 20)); }
    void fail(std::string message, std::string hint = {}) {
        if (!mistake_) mistake_ = Mistake{std::move(message), std::move(hint)};
    }
    std::string name() {
        const auto begin = at_;
        while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
        return std::string(text_.substr(begin, at_ - begin));
    }

    std::vector<std::string> path() {
        std::vector<std::string> names;
        skip_space();
        do {
            names.push_back(name());
            if (names.back().empty()) fail("a name is missing in the path", kShape);
        } while (!mistake_ && at_ < text_.size() && text_[at_] == '.' && ++at_ > 0);
        return names;
    }

    Filter filter() {
        skip_space();
        const auto word = name();
        const auto& kinds = filter_kinds();
        const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const FilterKind& k) {
            return k.name == word;
        });
        if (kind == kinds.end()) {
            std::vector<std::string> names;
            for (const auto& k : kinds) names.emplace_back(k.name);
            fail(
                "unknown filter " + (word.empty() ? rest() : word),
                config::nearest_hint(word, names)
            );
            return {};
        }
        Filter result;
        result.id = kind->id;
        const bool opened = accept('(');
        if (opened != (kind->argument != FilterArgument::none)) {
            fail(
                std::string("the filter ") + word +
                (opened ? " takes no argument" : " needs an argument in ( )")
            );
            return result;
        }
        if (!opened) return result;
        argument(result, *kind);
        if (!mistake_ && !accept(')')) fail("( is never closed behind the filter " + word);
        return result;
    }

    void argument(Filter& result, const FilterKind& kind) {
        const auto value = literal();
        if (mistake_) return;
        const auto* string = value.as_string();
        const auto* number = value.as_number();
        switch (kind.argument) {
            case FilterArgument::none:
                return;
            case FilterArgument::literal:
                result.literal = value;
                return;
            case FilterArgument::text:
                if (string == nullptr) return fail(std::string(kind.name) + " needs a quoted text");
                result.text = *string;
                return;
            case FilterArgument::integer: {
                bool whole = number != nullptr;
                if (whole) {
                    const auto* end = number->text.data() + number->text.size();
                    const auto parsed = std::from_chars(number->text.data(), end, result.integer);
                    constexpr std::int64_t kMost = 1'000'000'000'000;
                    whole = parsed.ec == std::errc{} && parsed.ptr == end &&
                            result.integer >= -kMost && result.integer <= kMost;
                }
                const bool positive = kind.id != FilterId::truncate || result.integer >= 1;
                if (!whole || !positive) fail(std::string(kind.name) + " needs a whole number");
                return;
            }
        }
    }

    Json literal() {
        skip_space();
        if (at_ == text_.size()) {
            fail("an argument is missing");
            return {};
        }
        const char quote = text_[at_];
        if (quote == '\'' || quote == '"') {
            const auto end = text_.find(quote, at_ + 1);
            if (end == std::string_view::npos) {
                fail("a quote is never closed");
                return {};
            }
            Json value(text_.substr(at_ + 1, end - at_ - 1));
            at_ = end + 1;
            return value;
        }
        const auto begin = at_;
        while (at_ < text_.size() && text_[at_] != ')' && text_[at_] != ' ') ++at_;
        const auto word = text_.substr(begin, at_ - begin);
        auto parsed = outbox::parse_json(word);
        if (!parsed.value || parsed.value->as_array() != nullptr ||
            parsed.value->as_object() != nullptr) {
            fail(
                "\"" + std::string(word) + "\" is no argument",
                "a quoted text, a number, true, false or null"
            );
            return {};
        }
        return std::move(*parsed.value);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::optional<Mistake> mistake_;
};

std::optional<Mistake> check_path(
    const std::vector<std::string>& path, const CompileContext& context
) {
    const auto& roots = template_roots();
    std::vector<std::string> usable;
    const Root* root = nullptr;
    for (const auto& candidate : roots) {
        if (candidate.name == path.front()) root = &candidate;
        if (candidate.name == "original" && !context.compensation) continue;
        if (candidate.name == "page" && !context.paginated) continue;
        usable.emplace_back(candidate.name);
    }
    if (root == nullptr) {
        return Mistake{"unknown root " + path.front(), config::nearest_hint(path.front(), usable)};
    }
    if (root->name == "original" && !context.compensation) {
        return Mistake{"only a compensation has an original", config::nearest_hint("", usable)};
    }
    if (root->name == "page" && !context.paginated) {
        return Mistake{
            "page is known only where a listing has paginate", config::nearest_hint("", usable)
        };
    }
    if (root->members.empty()) return std::nullopt;
    const auto& members = root->members;
    if (path.size() < 2) {
        return Mistake{
            path.front() + " is no value; name a member", config::nearest_hint("", members)
        };
    }
    if (std::find(members.begin(), members.end(), path[1]) == members.end()) {
        return Mistake{
            path.front() + " has no member " + path[1], config::nearest_hint(path[1], members)
        };
    }
    const bool deep = path.front() == "original" && path[1] != "id";
    if (path.size() > 2 && !deep) {
        return Mistake{path.front() + "." + path[1] + " has no members", {}};
    }
    return std::nullopt;
}

std::string trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    const auto end = text.find_last_not_of(" \t\r\n");
    return std::string(text.substr(begin, end - begin + 1));
}

std::string dotted(const std::vector<std::string>& path) {
    std::string out;
    for (const auto& name : path) out += (out.empty() ? "" : ".") + name;
    return out;
}

}  // namespace

std::size_t closing_braces(std::string_view text, std::size_t from) {
    char quote = 0;
    for (std::size_t at = from; at < text.size(); ++at) {
        if (quote != 0) {
            if (text[at] == quote) quote = 0;
        } else if (text[at] == '\'' || text[at] == '"') {
            quote = text[at];
        } else if (text[at] == '}' && at + 1 < text.size() && text[at + 1] == '}') {
            return at;
        }
    }
    return std::string_view::npos;
}

std::optional<Expression> parse_expression(
    std::string_view inside, const config::Mark& mark, CompileContext& context
) {
    Parser parser(inside);
    auto expression = parser.parse();
    auto mistake = parser.mistake();
    if (expression) mistake = check_path(expression->path, context);
    if (mistake) {
        context.diagnostics.error(
            mark, "in {{ " + trimmed(inside) + " }}: " + mistake->message, mistake->hint
        );
        return std::nullopt;
    }
    expression->source = trimmed(inside);
    context.references.push_back({dotted(expression->path), mark});
    return expression;
}

}  // namespace tools
