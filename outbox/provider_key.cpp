#include "outbox/provider_key.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "outbox/sha256.hpp"

namespace outbox {
namespace {

using Encoding = KeySettings::Encoding;

constexpr std::size_t kMinBits = 96;  // fewer could collide by accident
constexpr std::size_t kUuidLength = 36;
constexpr std::size_t kShortLength = 22;

constexpr std::size_t bits_per_character(Encoding encoding) {
    switch (encoding) {
        case Encoding::hex:
            return 4;
        case Encoding::uuid:
            return 0;  // cannot be cut
        case Encoding::base64url:
            return 6;
        case Encoding::base32hex:
            return 5;
        case Encoding::short_:
            return 6;
    }
    return 0;
}

// Groups of `bits` from the head of the digest, the last one filled with zeros; no padding.
std::string encode(const Sha256& digest, std::size_t bits, std::string_view alphabet) {
    std::string text;
    std::uint32_t buffer = 0;
    std::size_t held = 0;
    for (const auto byte : digest) {
        buffer = buffer << 8U | byte;
        held += 8;
        while (held >= bits) {
            held -= bits;
            text += alphabet[buffer >> held & ((1U << bits) - 1U)];
        }
    }
    if (held > 0) text += alphabet[buffer << (bits - held) & ((1U << bits) - 1U)];
    return text;
}

std::string base64url(const Sha256& digest) {
    return encode(digest, 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
}

// The head of the digest with the bits that make it a version 4 UUID.
std::string uuid(Sha256 digest) {
    digest[6] = static_cast<std::uint8_t>((digest[6] & 0x0FU) | 0x40U);
    digest[8] = static_cast<std::uint8_t>((digest[8] & 0x3FU) | 0x80U);
    auto text = to_hex(digest).substr(0, 32);
    for (const std::size_t dash : {8U, 13U, 18U, 23U}) text.insert(dash, 1, '-');
    return text;
}

std::string encoded(const Sha256& digest, Encoding encoding) {
    switch (encoding) {
        case Encoding::hex:
            return to_hex(digest);
        case Encoding::uuid:
            return uuid(digest);
        case Encoding::base64url:
            return base64url(digest);
        case Encoding::base32hex:
            return encode(digest, 5, "0123456789abcdefghijklmnopqrstuv");
        case Encoding::short_:
            return base64url(digest).substr(0, kShortLength);
    }
    return {};
}

std::size_t full_length(Encoding encoding) {
    return encoded({}, encoding).size();
}

}  // namespace

std::string provider_key(
    std::string_view key_namespace, const OperationId& id, const KeySettings& settings
) {
    const auto digest = sha256({key_namespace, std::string_view("\0", 1), id.value});
    const auto key = settings.prefix + encoded(digest, settings.encoding);
    return key.substr(0, settings.max_length);
}

std::optional<std::string> check_key_settings(const KeySettings& settings) {
    const auto room = settings.max_length - std::min(settings.prefix.size(), settings.max_length);
    if (settings.encoding == Encoding::uuid) {
        if (room >= kUuidLength) return std::nullopt;
        return "a uuid cannot be cut: max_length must be at least " +
               std::to_string(settings.prefix.size() + kUuidLength);
    }
    const auto bits = bits_per_character(settings.encoding);
    if (std::min(room, full_length(settings.encoding)) * bits >= kMinBits) return std::nullopt;
    const auto characters = (kMinBits + bits - 1) / bits;
    return "fewer than 96 bits of the key would remain: max_length must be at least " +
           std::to_string(settings.prefix.size() + characters);
}

}  // namespace outbox
