#include "tools/pagination.hpp"

#include <charconv>

#include "config/nearest.hpp"
#include "tools/filter.hpp"
#include "tools/link_header.hpp"
#include "tools/pointer.hpp"

namespace tools {
namespace {

using outbox::Json;
using ValueKind = config::Value::Kind;

constexpr const char* kFromHint =
    "body:/next_cursor, header:link, header:X-Next, last:/id, offset or page";
constexpr const char* kToHint = "query:cursor or url";
constexpr const char* kToArgumentHint = "argument:cursor";

// The rest behind a prefix such as "body:".
std::optional<std::string> behind(const std::string& text, std::string_view prefix) {
    if (text.rfind(prefix, 0) != 0) return std::nullopt;
    return text.substr(prefix.size());
}

}  // namespace

Pagination Pagination::compile(
    const config::Value& value, AnswerKind kind, CompileContext& context
) {
    Pagination result;
    auto& diagnostics = context.diagnostics;
    if (!value.is(ValueKind::mapping)) {
        diagnostics.error(value.mark, "paginate must be a mapping of from, to, more and max_pages");
        return result;
    }
    bool from = false;
    bool to = false;
    for (const auto& member : value.members) {
        if (member.key == "from") {
            from = true;
            result.compile_from(member.value, context);
        } else if (member.key == "to") {
            to = true;
            result.compile_to(member.value, kind, context);
        } else if (member.key == "more") {
            result.more_ = PointerConditions::compile(
                member.value, "more", PointerConditions::Optional::forbidden, context
            );
        } else if (member.key == "max_pages") {
            result.compile_max_pages(member.value, context);
        } else {
            diagnostics.error(
                member.key_mark,
                "unknown key " + member.key + " in paginate",
                config::nearest_hint(member.key, {"from", "to", "more", "max_pages"})
            );
        }
    }
    if (!from) diagnostics.error(value.mark, "paginate lacks from", kFromHint);
    const bool mcp = kind == AnswerKind::mcp;
    if (!to && result.from_ == From::link && !mcp) result.to_url_ = to = true;
    if (!to) {
        diagnostics.error(value.mark, "paginate lacks to", mcp ? kToArgumentHint : kToHint);
    }
    return result;
}

void Pagination::compile_from(const config::Value& value, CompileContext& context) {
    const auto& text = value.text;
    if (text == "offset") {
        from_ = From::offset;
    } else if (text == "page") {
        from_ = From::page;
    } else if (const auto pointer = behind(text, "body:")) {
        from_ = From::body;
        from_name_ = *pointer;
        check_pointer(*pointer, value.mark, context.diagnostics);
    } else if (const auto last = behind(text, "last:")) {
        from_ = From::last;
        from_name_ = *last;
        check_pointer(*last, value.mark, context.diagnostics);
    } else if (const auto header = behind(text, "header:"); header && !header->empty()) {
        from_ = same_header_name(*header, "link") ? From::link : From::header;
        from_name_ = *header;
    } else {
        context.diagnostics.error(
            value.mark, "paginate.from \"" + text + "\" is not known", kFromHint
        );
    }
}

void Pagination::compile_to(const config::Value& value, AnswerKind kind, CompileContext& context) {
    const bool mcp = kind == AnswerKind::mcp;
    const auto name = behind(value.text, mcp ? "argument:" : "query:");
    if (value.text == "url" && !mcp) {
        to_url_ = true;
    } else if (name && !name->empty() && name->find("{{") == std::string::npos) {
        to_name_ = *name;
    } else {
        context.diagnostics.error(
            value.mark,
            "paginate.to \"" + value.text + "\" is not known",
            mcp ? kToArgumentHint : kToHint
        );
    }
}

outbox::Json Pagination::argument_value(const std::string& value) const {
    const bool counted = from_ == From::offset || from_ == From::page;
    return counted ? Json(Json::Number{value}) : Json(value);
}

void Pagination::compile_max_pages(const config::Value& value, CompileContext& context) {
    constexpr int kMost = 10'000;
    const auto* end = value.text.data() + value.text.size();
    const auto parsed = std::from_chars(value.text.data(), end, max_pages_);
    const bool whole = parsed.ec == std::errc{} && parsed.ptr == end;
    if (!whole || max_pages_ < 1 || max_pages_ > kMost) {
        context.diagnostics.error(value.mark, "max_pages must be a whole number from 1 to 10000");
        max_pages_ = 1;
    }
}

std::optional<outbox::Error> Pagination::check(const Scope& scope) const {
    return more_ ? more_->check(scope) : std::nullopt;
}

std::string Pagination::named_next(
    const Answer& answer, const Json::Array& items, std::size_t seen, int page
) const {
    const auto text_at = [&](const Json* root) {
        const auto* found = root == nullptr ? nullptr : root->at_pointer(from_name_);
        return found == nullptr ? std::string{} : scalar_text(*found).value_or("");
    };
    switch (from_) {
        case From::body:
            return text_at(answer.body ? &*answer.body : nullptr);
        case From::last:
            return items.empty() ? std::string{} : text_at(&items.back());
        case From::offset:
            return items.empty() ? std::string{} : std::to_string(seen);
        case From::page:
            return items.empty() ? std::string{} : std::to_string(page + 1);
        case From::header: {
            const auto* header = answer.header(from_name_);
            return header == nullptr ? std::string{} : *header;
        }
        case From::link: {
            // Several Link headers are one list; the next one may stand in any of them.
            for (const auto& [name, value] : answer.headers) {
                if (!same_header_name(name, "link")) continue;
                if (auto url = next_link(value)) return *url;
            }
            return {};
        }
    }
    return {};
}

Pagination::Next Pagination::next(
    const Answer& answer, const Json::Array& items, std::size_t seen, int page, const Scope& scope
) const {
    if (more_ && !(answer.body && more_->hold(*answer.body, scope))) return {};
    auto value = named_next(answer, items, seen, page);
    if (!value.empty()) return {.more = true, .value = std::move(value), .lost = {}};
    if (!more_) return {};
    return {.more = true, .value = {}, .lost = "the listing says there is more, but not where"};
}

std::optional<std::string> Pagination::target(const HttpRequest& request, const std::string& value)
    const {
    if (to_url_) return same_origin_target(request, value);
    return with_parameter(request.target, to_name_, value);
}

}  // namespace tools
