#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tools {

// The signatures of Standard Webhooks (version 1, HMAC-SHA256): the receiver proves with them who
// sent a request and when, and knows a repeated one by its webhook-id.
class WebhookSignature {
 public:
    // secret: whsec_ and base64 of 24 to 64 bytes. Empty when it is none.
    static std::optional<WebhookSignature> compile(std::string_view secret);

    // The value of webhook-signature: "v1,…".
    [[nodiscard]] std::string sign(
        std::string_view id, std::chrono::sys_seconds at, std::string_view body
    ) const;

 private:
    explicit WebhookSignature(std::string key) : key_(std::move(key)) {}
    std::string key_;
};

}  // namespace tools
