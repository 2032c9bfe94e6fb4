#include "tools/webhook_signature.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <stdexcept>

#include "tools/encoding.hpp"

namespace tools {

std::optional<WebhookSignature> WebhookSignature::compile(std::string_view secret) {
    constexpr std::string_view kPrefix = "whsec_";
    constexpr std::size_t kShortest = 24;
    constexpr std::size_t kLongest = 64;
    if (secret.rfind(kPrefix, 0) != 0) return std::nullopt;
    auto key = base64_decode(secret.substr(kPrefix.size()));
    if (!key || key->size() < kShortest || key->size() > kLongest) return std::nullopt;
    return WebhookSignature(std::move(*key));
}

std::string WebhookSignature::sign(
    std::string_view id, std::chrono::sys_seconds at, std::string_view body
) const {
    std::string text;
    text.reserve(id.size() + body.size() + 24);
    text += id;
    text += '.';
    text += std::to_string(at.time_since_epoch().count());
    text += '.';
    text += body;
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int length = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    const auto* done = HMAC(
        EVP_sha256(),
        key_.data(),
        static_cast<int>(key_.size()),
        bytes,
        text.size(),
        digest.data(),
        &length
    );
    if (done == nullptr) throw std::runtime_error("OpenSSL could not compute HMAC-SHA256");
    return "v1," + base64({reinterpret_cast<const char*>(digest.data()), length});
}

}  // namespace tools
