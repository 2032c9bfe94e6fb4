#include "tools/extraction.hpp"

#include <algorithm>

#include "outbox/utf8.hpp"
#include "tools/filter.hpp"
#include "tools/pointer.hpp"

namespace tools {
namespace {

using outbox::Json;
using ValueKind = config::Value::Kind;

constexpr std::string_view kHeader = "header:";

std::string shown(const Source& source) {
    if (source.kind == Source::Kind::header) return std::string(kHeader) + source.name;
    return source.name.empty() ? "the whole body" : source.name;
}

}  // namespace

std::optional<Source> compile_source(const config::Text& text, config::Diagnostics& diagnostics) {
    if (text.value.rfind(kHeader, 0) == 0) {
        auto name = text.value.substr(kHeader.size());
        if (!name.empty()) return Source{Source::Kind::header, std::move(name)};
        diagnostics.error(text.mark, "header: needs a name", "for instance header:Location");
        return std::nullopt;
    }
    if (!check_pointer(text.value, text.mark, diagnostics)) return std::nullopt;
    return Source{Source::Kind::pointer, text.value};
}

Extraction Extraction::compile(const config::Value& value, config::Diagnostics& diagnostics) {
    Extraction result;
    if (value.is(ValueKind::string)) {
        if (auto source = compile_source({value.text, value.mark}, diagnostics)) {
            result.node_ = std::move(*source);
        }
    } else if (value.is(ValueKind::mapping)) {
        Members members;
        for (const auto& member : value.members) {
            members.emplace_back(member.key, compile(member.value, diagnostics));
        }
        result.node_ = std::move(members);
    } else {
        diagnostics.error(
            value.mark,
            "result must be a pointer or a mapping of names to pointers",
            "for instance { id: /id, url: header:Location }"
        );
    }
    return result;
}

Json Extraction::extract(const Answer& answer, const Json* root, std::vector<std::string>& missing)
    const {
    if (const auto* members = std::get_if<Members>(&node_)) {
        Json::Object object;
        for (const auto& [name, member] : *members) {
            object.emplace_back(name, member.extract(answer, root, missing));
        }
        return Json(std::move(object));
    }
    const auto* source = std::get_if<Source>(&node_);
    if (source == nullptr) return {};
    if (source->kind == Source::Kind::header) {
        if (const auto* text = answer.header(source->name)) {
            return Json(outbox::repair_utf8(*text));
        }
    } else if (const auto* found = root == nullptr ? nullptr : root->at_pointer(source->name)) {
        return *found;
    }
    missing.push_back(shown(*source));
    return {};
}

Extraction::Extracted Extraction::extract(const Answer& answer, const Json* root) const {
    std::vector<std::string> missing;
    Extracted result;
    result.value = extract(answer, root, missing);
    if (missing.empty()) return result;
    result.note = "the result could not be extracted: the answer has no ";
    for (const auto& name : missing) {
        if (&name != missing.data()) result.note += ", ";
        result.note += name;
    }
    if (root == nullptr) {
        result.note +=
            answer.unreadable() ? " (its body is no readable JSON)" : " (it has no body)";
    }
    // Nothing at all could be extracted: null says so better than an object of nulls.
    const auto* members = std::get_if<Members>(&node_);
    const bool none = members != nullptr && missing.size() >= members->size() &&
                      std::all_of(
                          result.value.as_object()->begin(),
                          result.value.as_object()->end(),
                          [](const auto& member) { return member.second.is_null(); }
                      );
    if (none) result.value = Json{};
    return result;
}

TextSource TextSource::compile(const config::Text& text, config::Diagnostics& diagnostics) {
    TextSource result;
    const bool is_source =
        text.value.rfind(kHeader, 0) == 0 || (!text.value.empty() && text.value.front() == '/');
    if (is_source) {
        result.source_ = compile_source(text, diagnostics);
    } else if (text.value.find("{{") != std::string::npos) {
        diagnostics.error(text.mark, "code and message are a pointer, header:Name or plain text");
    } else {
        result.literal_ = text.value;
    }
    return result;
}

std::optional<std::string> TextSource::read(const Answer& answer, std::size_t max_bytes) const {
    if (!source_) {
        if (literal_.empty()) return std::nullopt;
        return literal_;
    }
    if (source_->kind == Source::Kind::header) {
        const auto* text = answer.header(source_->name);
        if (text == nullptr) return std::nullopt;
        const Json value(*text);
        return presentable(&value, max_bytes);
    }
    return presentable(answer.body ? answer.body->at_pointer(source_->name) : nullptr, max_bytes);
}

std::optional<std::string> presentable(const Json* value, std::size_t max_bytes) {
    auto text = value == nullptr ? std::nullopt : scalar_text(*value);
    if (!text) return std::nullopt;
    auto clean = outbox::repair_utf8(*text);
    for (char& c : clean) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    }
    const auto begin = clean.find_first_not_of(' ');
    if (begin == std::string::npos) return std::nullopt;
    clean.erase(clean.find_last_not_of(' ') + 1);
    return std::string(outbox::utf8_head(std::string_view(clean).substr(begin), max_bytes));
}

}  // namespace tools
