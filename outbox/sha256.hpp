#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace outbox {

using Sha256 = std::array<std::uint8_t, 32>;

// SHA-256 over the parts, one behind the other.
[[nodiscard]] Sha256 sha256(std::initializer_list<std::string_view> parts);

// Lower-case hex of SHA-256.
[[nodiscard]] std::string sha256_hex(std::string_view text);

[[nodiscard]] std::string to_hex(const Sha256& digest);

}  // namespace outbox
