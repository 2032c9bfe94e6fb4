#include "outbox/sha256.hpp"

#include <openssl/evp.h>

#include <memory>
#include <stdexcept>

namespace outbox {

Sha256 sha256(std::initializer_list<std::string_view> parts) {
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(
        EVP_MD_CTX_new(), &EVP_MD_CTX_free
    );
    Sha256 digest{};
    bool ok = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
    for (const auto part : parts) {
        ok = ok && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
    }
    ok = ok && EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
    // Only a broken installation gets here (no memory, a provider without SHA-256).
    if (!ok) throw std::runtime_error("OpenSSL could not compute SHA-256");
    return digest;
}

std::string sha256_hex(std::string_view text) {
    return to_hex(sha256({text}));
}

std::string to_hex(const Sha256& digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string hex;
    hex.reserve(digest.size() * 2);
    for (const auto byte : digest) {
        hex += kDigits[byte >> 4U];
        hex += kDigits[byte & 0x0fU];
    }
    return hex;
}

}  // namespace outbox
