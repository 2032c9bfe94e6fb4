#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace outbox::pg {

// Builds one array parameter in Postgres' text form, element by element. Database CPU to take a
// batch of 500 completions apart: arrays 1.1 µs a row, one jsonb parameter 1.2, one json 1.8.
class ArrayText {
 public:
    void add(std::int64_t value);
    void add_bool(bool value);
    void add_null();
    // Throws StoreError data on NUL, which libpq would cut the parameter at without a word.
    void add(std::string_view value);
    void add(const std::optional<std::string>& value);

    // The literal; the object is used up.
    [[nodiscard]] std::string take() &&;

 private:
    void separate();
    std::string text_ = "{";
};

// The text itself, or StoreError data when it holds NUL.
[[nodiscard]] std::string without_nul(std::string text);

}  // namespace outbox::pg
