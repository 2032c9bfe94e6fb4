#include "daemon/redaction.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace outboxd {

namespace {

// Shorter values (a digit, "yes") are everywhere: masking them would hide everything and nothing.
constexpr std::size_t kShortestHidden = 4;

std::string unescaped(std::string_view token) {
    std::string key;
    for (std::size_t i = 0; i < token.size(); ++i) {
        const bool escape = token[i] == '~' && i + 1 < token.size();
        key += escape ? (token[++i] == '1' ? '/' : '~') : token[i];
    }
    return key;
}

outbox::Json* step(outbox::Json& value, const std::string& key) {
    if (auto* object = value.as_object()) {
        for (auto& [name, member] : *object) {
            if (name == key) return &member;
        }
        return nullptr;
    }
    auto* array = value.as_array();
    std::size_t index = 0;
    const auto* end = key.data() + key.size();
    const auto [last, error] = std::from_chars(key.data(), end, index);
    if (array == nullptr || error != std::errc() || last != end) return nullptr;
    return index < array->size() ? &(*array)[index] : nullptr;
}

// The value at a JSON Pointer; null when nothing is there.
outbox::Json* at(outbox::Json& value, std::string_view pointer) {
    auto* found = &value;
    while (!pointer.empty() && found != nullptr) {
        pointer.remove_prefix(1);  // the slash, which the loader saw to
        const auto token = pointer.substr(0, pointer.find('/'));
        pointer.remove_prefix(token.size());
        found = step(*found, unescaped(token));
    }
    return found;
}

const config::Tool* find(const config::Config& config, const std::string& name) {
    const auto found =
        std::find_if(config.tools.begin(), config.tools.end(), [&](const auto& tool) {
            return tool.name == name;
        });
    return found == config.tools.end() ? nullptr : &*found;
}

}  // namespace

Redaction::Redaction(const config::Config& config, const std::string& tool) {
    const auto* known = find(config, tool);
    // A compensation is about the same things as what it undoes.
    if (known != nullptr && known->compensates_tool) known = find(config, *known->compensates_tool);
    hides_all_ = known == nullptr;
    if (known == nullptr) return;
    for (const auto& pointer : known->redact) pointers_.push_back(pointer.value);
}

outbox::Json Redaction::arguments(outbox::Json value) {
    if (hides_all_) return kHidden;
    for (const auto& pointer : pointers_) {
        auto* found = at(value, pointer);
        if (found == nullptr) continue;
        remember(*found);
        *found = kHidden;
    }
    std::sort(hidden_.begin(), hidden_.end(), [](const auto& a, const auto& b) {
        return a.size() > b.size();
    });
    return value;
}

void Redaction::remember(const outbox::Json& value) {
    if (const auto* text = value.as_string()) {
        if (text->size() >= kShortestHidden) hidden_.push_back(*text);
    } else if (const auto* number = value.as_number()) {
        if (number->text.size() >= kShortestHidden) hidden_.push_back(number->text);
    } else if (const auto* array = value.as_array()) {
        for (const auto& item : *array) remember(item);
    } else if (const auto* object = value.as_object()) {
        for (const auto& [name, member] : *object) remember(member);
    }
}

std::string Redaction::masked(std::string text) const {
    for (const auto& hidden : hidden_) {
        for (auto found = text.find(hidden); found != std::string::npos;
             found = text.find(hidden, found + kHidden.size())) {
            text.replace(found, hidden.size(), kHidden);
        }
    }
    return text;
}

outbox::Json Redaction::elsewhere(outbox::Json value) const {
    if (hides_all_ && !value.is_null()) return kHidden;
    if (hidden_.empty()) return value;
    if (const auto* text = value.as_string()) return masked(*text);
    if (const auto* number = value.as_number()) {
        const bool hide = std::find(hidden_.begin(), hidden_.end(), number->text) != hidden_.end();
        return hide ? outbox::Json(kHidden) : value;
    }
    if (auto* array = value.as_array()) {
        for (auto& item : *array) item = elsewhere(std::move(item));
    } else if (auto* object = value.as_object()) {
        for (auto& [name, member] : *object) {
            name = masked(std::move(name));
            member = elsewhere(std::move(member));
        }
    }
    return value;
}

}  // namespace outboxd
