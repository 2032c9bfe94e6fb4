#include "outbox/pg/array_text.hpp"

#include <utility>

#include "outbox/store.hpp"

namespace outbox::pg {

namespace {

void refuse_nul(std::string_view text) {
    if (text.find('\0') != std::string_view::npos) {
        throw StoreError(StoreError::Kind::data, "a parameter contains NUL");
    }
}

}  // namespace

void ArrayText::separate() {
    if (text_.size() > 1) {
        text_ += ',';
    }
}

void ArrayText::add(std::int64_t value) {
    separate();
    text_ += std::to_string(value);
}

void ArrayText::add_bool(bool value) {
    separate();
    text_ += value ? 't' : 'f';
}

void ArrayText::add_null() {
    separate();
    text_ += "NULL";
}

void ArrayText::add(std::string_view value) {
    refuse_nul(value);
    separate();
    text_ += '"';
    while (!value.empty()) {
        auto plain = value.find_first_of("\"\\");
        text_ += value.substr(0, plain);
        if (plain == std::string_view::npos) {
            break;
        }
        text_ += '\\';
        text_ += value[plain];
        value.remove_prefix(plain + 1);
    }
    text_ += '"';
}

void ArrayText::add(const std::optional<std::string>& value) {
    if (value) {
        add(std::string_view(*value));
    } else {
        add_null();
    }
}

std::string ArrayText::take() && {
    text_ += '}';
    return std::move(text_);
}

std::string without_nul(std::string text) {
    refuse_nul(text);
    return text;
}

}  // namespace outbox::pg
