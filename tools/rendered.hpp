#pragma once

#include <string>
#include <utility>
#include <variant>

#include "outbox/outcome.hpp"

namespace tools {

// What rendering gives: a value, or why this operation must not be sent (missing_argument,
// invalid_argument). A refusal is found before the first byte, so it is a definite "no effect".
template <class T>
class Rendered {
 public:
    Rendered(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Rendered(outbox::Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return state_.index() == 0; }
    [[nodiscard]] T& value() { return std::get<0>(state_); }
    [[nodiscard]] const T& value() const { return std::get<0>(state_); }
    [[nodiscard]] const outbox::Error& error() const { return std::get<1>(state_); }

 private:
    std::variant<T, outbox::Error> state_;
};

inline outbox::Error invalid_argument(std::string message) {
    return {.code = "invalid_argument", .message = std::move(message)};
}
inline outbox::Error missing_argument(std::string message) {
    return {.code = "missing_argument", .message = std::move(message)};
}

}  // namespace tools
