#include "config/sql_text.hpp"

#include <algorithm>

namespace config {
namespace {

bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
// What may stand within an identifier of SQL.
bool is_word(char c) {
    return is_name_start(c) || is_digit(c) || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

class Parser {
 public:
    explicit Parser(std::string_view text) : text_(text) {}

    SqlText run() {
        while (at_ < text_.size()) step();
        if (out_.keyword.empty()) {
            problem(0, "there is no statement", "for example INSERT INTO … RETURNING id");
        }
        return std::move(out_);
    }

 private:
    [[nodiscard]] char peek(std::size_t ahead) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    [[nodiscard]] bool starts(std::string_view with) const {
        return text_.substr(at_, with.size()) == with;
    }

    void problem(std::size_t offset, std::string what, std::string hint) {
        out_.problems.push_back({offset, std::move(what), std::move(hint)});
    }

    // The next n characters belong to the statement as they are.
    void take(std::size_t n) {
        out_.numbered += text_.substr(at_, n);
        at_ += std::min(n, text_.size() - at_);
    }

    void step() {
        const char c = text_[at_];
        if (starts("--") || starts("/*")) return comment();
        if (is_blank(c)) return take(1);
        if (c == ';') return semicolon();
        if (end_ != std::string_view::npos && !told_several_) {
            told_several_ = true;
            problem(at_, "several statements", "one statement only: a WITH can hold several parts");
        }
        if (c == '\'') return quoted('\'', false);
        if (c == '"') return quoted('"', false);
        if (is_name_start(c) || static_cast<unsigned char>(c) >= 0x80) return word();
        if (is_digit(c)) return number();
        if (c == '$') return dollar();
        if (c == ':') return colon();
        take(1);
    }

    void semicolon() {
        if (end_ == std::string_view::npos) end_ = at_;
        ++at_;  // behind the statement nothing but blanks may come
        out_.numbered += ' ';
    }

    // Removed: what it says cannot be misread by anybody then.
    void comment() {
        const auto begin = at_;
        out_.numbered += ' ';
        if (starts("--")) {
            at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
            return;
        }
        int depth = 0;
        while (at_ < text_.size()) {
            if (starts("/*")) {
                ++depth;
                at_ += 2;
            } else if (starts("*/")) {
                at_ += 2;
                if (--depth == 0) return;
            } else {
                ++at_;
            }
        }
        problem(begin, "a comment without an end", "close it with */");
    }

    // A doubled quote is one inside; with escapes a backslash takes the next character with it.
    void quoted(char quote, bool escapes) {
        const auto begin = at_;
        take(1);
        while (at_ < text_.size()) {
            if (escapes && text_[at_] == '\\') {
                take(2);
            } else if (text_[at_] == quote) {
                const bool doubled = peek(1) == quote;
                take(doubled ? 2 : 1);
                if (!doubled) return;
            } else {
                take(1);
            }
        }
        problem(begin, "a quote without an end", "double a quote inside of quotes");
    }

    void word() {
        const auto begin = at_;
        while (at_ < text_.size() && is_word(text_[at_])) take(1);
        const auto found = text_.substr(begin, at_ - begin);
        if (out_.keyword.empty()) {
            for (const char c : found) {
                out_.keyword += c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
            }
        }
        // E'…' is the one literal in which a backslash escapes.
        if (found.size() == 1 && (found[0] == 'e' || found[0] == 'E') && peek(0) == '\'') {
            quoted('\'', true);
        }
    }

    void number() {
        while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '.')) take(1);
    }

    void dollar() {
        if (is_digit(peek(1))) {
            problem(
                at_, "a numbered parameter", "give it a name: :name, and parameters: { name: … }"
            );
            return take(1);
        }
        auto end = at_ + 1;
        while (end < text_.size() && is_word(text_[end]) && text_[end] != '$') ++end;
        if (end >= text_.size() || text_[end] != '$') return take(1);
        const auto tag = text_.substr(at_, end + 1 - at_);
        const auto close = text_.find(tag, end + 1);
        if (close == std::string_view::npos) {
            problem(at_, "a dollar quote without an end", "close it with " + std::string(tag));
            return take(text_.size() - at_);
        }
        take(close + tag.size() - at_);
    }

    void colon() {
        if (peek(1) == ':' || peek(1) == '=') return take(2);
        if (!is_name_start(peek(1))) return take(1);
        auto end = at_ + 1;
        while (end < text_.size() && (is_name_start(text_[end]) || is_digit(text_[end]))) ++end;
        const std::string name(text_.substr(at_ + 1, end - at_ - 1));
        auto found = std::find(out_.names.begin(), out_.names.end(), name);
        if (found == out_.names.end()) found = out_.names.insert(found, name);
        // A word or a number right before it would grow together with the $.
        if (!out_.numbered.empty() && is_word(out_.numbered.back())) out_.numbered += ' ';
        out_.numbered += '$' + std::to_string(found - out_.names.begin() + 1);
        at_ = end;
        if (is_word(peek(0))) out_.numbered += ' ';
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::size_t end_ = std::string_view::npos;  // of the first semicolon
    bool told_several_ = false;
    SqlText out_;
};

}  // namespace

SqlText parse_sql(std::string_view text) {
    auto out = Parser(text).run();
    const auto last = out.numbered.find_last_not_of(" \t\r\n\f\v");
    out.numbered.resize(last == std::string::npos ? 0 : last + 1);
    const auto first = out.numbered.find_first_not_of(" \t\r\n\f\v");
    out.numbered.erase(0, std::min(first, out.numbered.size()));
    return out;
}

}  // namespace config
