#include "config/value.hpp"

namespace config {

const Value::Member* Value::member(std::string_view key) const {
    for (const auto& m : members) {
        if (m.key == key) return &m;
    }
    return nullptr;
}

const Value* Value::find(std::string_view key) const {
    const auto* found = member(key);
    return found ? &found->value : nullptr;
}

}  // namespace config
