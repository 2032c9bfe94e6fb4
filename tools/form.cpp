#include "tools/form.hpp"

#include "tools/encoding.hpp"
#include "tools/filter.hpp"

namespace tools {
namespace {

using outbox::Json;

bool usable(const std::string& name) {
    return !name.empty() && name.find_first_of("[]") == std::string::npos && !has_control(name);
}

// `name` is encoded already; false when a member's name is refused.
bool append(std::string& out, const std::string& name, const Json& value) {
    if (const auto* object = value.as_object()) {
        for (const auto& [key, member] : *object) {
            if (!usable(key)) return false;
            const auto inner =
                name.empty() ? percent_encode(key) : name + "%5B" + percent_encode(key) + "%5D";
            if (!append(out, inner, member)) return false;
        }
        return true;
    }
    if (const auto* array = value.as_array()) {
        for (std::size_t i = 0; i < array->size(); ++i) {
            if (!append(out, name + "%5B" + std::to_string(i) + "%5D", (*array)[i])) return false;
        }
        return true;
    }
    const auto text = scalar_text(value);
    if (!text) return true;
    if (!out.empty()) out += '&';
    out += name;
    out += '=';
    out += percent_encode(*text);
    return true;
}

}  // namespace

Rendered<std::string> form_encode(const Json& value) {
    std::string out;
    if (value.as_object() == nullptr) return invalid_argument("a form must be an object");
    if (!append(out, {}, value)) {
        return invalid_argument("a form cannot hold a member whose name is empty or has brackets");
    }
    return out;
}

}  // namespace tools
