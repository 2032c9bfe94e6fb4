#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <valijson/internal/adapter.hpp>
#include <valijson/internal/basic_adapter.hpp>
#include <valijson/internal/frozen_value.hpp>

#include "outbox/decimal.hpp"
#include "outbox/json.hpp"
#include "tools/schema_limits.hpp"

// outbox::Json as valijson wants to see it: numbers stay texts, and looking costs steps. The shape
// of these classes is valijson's; its own adapters for other libraries look the same.
namespace tools::schema {

class Adapter;
class ArrayIterator;
class MemberIterator;
using Member = std::pair<std::string, Adapter>;

inline const outbox::Json& empty_object() {
    static const outbox::Json empty(outbox::Json::Object{});
    return empty;
}

inline const outbox::Json::Array& empty_array() {
    static const outbox::Json::Array empty;
    return empty;
}

class Array {
 public:
    using const_iterator = ArrayIterator;
    using iterator = ArrayIterator;
    Array() : array_(&empty_array()) {}
    explicit Array(const outbox::Json::Array& array) : array_(&array) {}
    [[nodiscard]] ArrayIterator begin() const;
    [[nodiscard]] ArrayIterator end() const;
    [[nodiscard]] std::size_t size() const { return array_->size(); }

 private:
    const outbox::Json::Array* array_;
};

class Object {
 public:
    using const_iterator = MemberIterator;
    using iterator = MemberIterator;
    Object() : object_(empty_object().as_object()) {}
    explicit Object(const outbox::Json::Object& object) : object_(&object) {}
    [[nodiscard]] MemberIterator begin() const;
    [[nodiscard]] MemberIterator end() const;
    [[nodiscard]] MemberIterator find(const std::string& name) const;
    [[nodiscard]] std::size_t size() const { return object_->size(); }

 private:
    const outbox::Json::Object* object_;
};

class Frozen final : public valijson::adapters::FrozenValue {
 public:
    explicit Frozen(outbox::Json value) : value_(std::move(value)) {}
    [[nodiscard]] FrozenValue* clone() const override { return new Frozen(value_); }
    [[nodiscard]] bool equalTo(const valijson::adapters::Adapter& other, bool strict)
        const override;

 private:
    outbox::Json value_;
};

class Value {
 public:
    Value() : json_(&empty_object()) {}
    explicit Value(const outbox::Json& json) : json_(&json) { SchemaWork::spend(); }

    [[nodiscard]] valijson::adapters::FrozenValue* freeze() const { return new Frozen(*json_); }

    [[nodiscard]] std::optional<Array> getArrayOptional() const {
        const auto* array = json_->as_array();
        return array == nullptr ? std::optional<Array>() : std::make_optional(Array(*array));
    }
    [[nodiscard]] std::optional<Object> getObjectOptional() const {
        const auto* object = json_->as_object();
        return object == nullptr ? std::optional<Object>() : std::make_optional(Object(*object));
    }
    bool getArraySize(std::size_t& size) const {
        const auto* array = json_->as_array();
        if (array != nullptr) size = array->size();
        return array != nullptr;
    }
    bool getObjectSize(std::size_t& size) const {
        const auto* object = json_->as_object();
        if (object != nullptr) size = object->size();
        return object != nullptr;
    }
    bool getBool(bool& value) const {
        const auto* boolean = json_->as_bool();
        if (boolean != nullptr) value = *boolean;
        return boolean != nullptr;
    }
    // Only lengths and counts of the schema are read as numbers; what is compared exactly is
    // compared by LeafCheck.
    bool getDouble(double& value) const {
        const auto* number = json_->as_number();
        if (number != nullptr) value = std::strtod(number->text.c_str(), nullptr);
        return number != nullptr;
    }
    bool getInteger(std::int64_t& value) const {
        const auto* number = json_->as_number();
        if (number == nullptr) return false;
        value = std::strtoll(number->text.c_str(), nullptr, 10);
        return true;
    }
    bool getString(std::string& value) const {
        const auto* string = json_->as_string();
        if (string != nullptr) value = *string;
        return string != nullptr;
    }

    static bool hasStrictTypes() { return true; }
    [[nodiscard]] bool isArray() const { return json_->as_array() != nullptr; }
    [[nodiscard]] bool isBool() const { return json_->as_bool() != nullptr; }
    [[nodiscard]] bool isNull() const { return json_->is_null(); }
    [[nodiscard]] bool isNumber() const { return json_->as_number() != nullptr; }
    [[nodiscard]] bool isObject() const { return json_->as_object() != nullptr; }
    [[nodiscard]] bool isString() const { return json_->as_string() != nullptr; }
    [[nodiscard]] bool isDouble() const { return isNumber() && !isInteger(); }
    [[nodiscard]] bool isInteger() const {
        const auto* number = json_->as_number();
        return number != nullptr &&
               number->text.find_first_not_of("-0123456789") == std::string::npos;
    }

 private:
    const outbox::Json* json_;
};

class Adapter : public valijson::adapters::BasicAdapter<Adapter, Array, Member, Object, Value> {
 public:
    Adapter() = default;
    explicit Adapter(const outbox::Json& json) : BasicAdapter(Value(json)), json_(&json) {}
    [[nodiscard]] const outbox::Json& json() const { return *json_; }

 private:
    const outbox::Json* json_ = &empty_object();  // the base keeps its own to itself
};

class ArrayIterator {
 public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Adapter;
    using difference_type = std::ptrdiff_t;
    using pointer = Adapter*;
    using reference = Adapter&;

    explicit ArrayIterator(outbox::Json::Array::const_iterator at) : at_(at) {}
    Adapter operator*() const { return Adapter(*at_); }
    valijson::adapters::DerefProxy<Adapter> operator->() const {
        return valijson::adapters::DerefProxy<Adapter>(**this);
    }
    bool operator==(const ArrayIterator& other) const { return at_ == other.at_; }
    bool operator!=(const ArrayIterator& other) const { return at_ != other.at_; }
    const ArrayIterator& operator++() {
        ++at_;
        return *this;
    }
    ArrayIterator operator++(int) { return ArrayIterator(at_++); }
    const ArrayIterator& operator--() {
        --at_;
        return *this;
    }
    void advance(std::ptrdiff_t n) { at_ += n; }

 private:
    outbox::Json::Array::const_iterator at_;
};

class MemberIterator {
 public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Member;
    using difference_type = std::ptrdiff_t;
    using pointer = Member*;
    using reference = Member&;

    explicit MemberIterator(outbox::Json::Object::const_iterator at) : at_(at) {}
    Member operator*() const { return {at_->first, Adapter(at_->second)}; }
    valijson::adapters::DerefProxy<Member> operator->() const {
        return valijson::adapters::DerefProxy<Member>(**this);
    }
    bool operator==(const MemberIterator& other) const { return at_ == other.at_; }
    bool operator!=(const MemberIterator& other) const { return at_ != other.at_; }
    const MemberIterator& operator++() {
        ++at_;
        return *this;
    }
    MemberIterator operator++(int) { return MemberIterator(at_++); }
    const MemberIterator& operator--() {
        --at_;
        return *this;
    }
    [[nodiscard]] const std::string& name() const { return at_->first; }

 private:
    outbox::Json::Object::const_iterator at_;
};

inline ArrayIterator Array::begin() const {
    return ArrayIterator(array_->begin());
}
inline ArrayIterator Array::end() const {
    return ArrayIterator(array_->end());
}
inline MemberIterator Object::begin() const {
    return MemberIterator(object_->begin());
}
inline MemberIterator Object::end() const {
    return MemberIterator(object_->end());
}
// Every member passed by is a step: many required names in a large object are not free.
inline MemberIterator Object::find(const std::string& name) const {
    auto at = object_->begin();
    while (at != object_->end() && at->first != name) ++at;
    SchemaWork::spend(1 + static_cast<std::size_t>(at - object_->begin()) / 16);
    return MemberIterator(at);
}
inline bool Frozen::equalTo(const valijson::adapters::Adapter& other, bool strict) const {
    return Adapter(value_).equalTo(other, strict);
}

}  // namespace tools::schema

template <>
struct valijson::adapters::AdapterTraits<tools::schema::Adapter> {
    using DocumentType = outbox::Json;
    static std::string adapterName() { return "outbox::Json"; }
};
