#include "tools/secret_mask.hpp"

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <utility>

#include "outbox/overloaded.hpp"
#include "tools/encoding.hpp"

namespace tools {
namespace {

constexpr std::size_t kShortest = 6;

}  // namespace

SecretMask::SecretMask(const std::map<std::string, config::Credential>& credentials) {
    for (const auto& [name, credential] : credentials) {
        const auto& secret = credential.secret.value;
        if (secret.size() < kShortest) continue;
        secrets_.push_back(secret);
        if (auto encoded = percent_encode(secret); encoded != secret) {
            secrets_.push_back(std::move(encoded));
        }
        if (credential.kind == config::Credential::Kind::basic) {
            secrets_.push_back(base64(credential.user_or_name + ":" + secret));
        }
    }
    std::sort(secrets_.begin(), secrets_.end(), [](const auto& a, const auto& b) {
        return a.size() > b.size();
    });
}

void SecretMask::apply(outbox::Outcome& outcome) const {
    if (secrets_.empty()) return;
    std::visit(
        outbox::Overloaded{
            [&](outbox::Succeeded& o) {
                apply(o.result);
                apply(o.note);
            },
            [&](outbox::Accepted& o) { apply(o.result); },
            [&](auto& o) { apply(o.error); },
        },
        outcome
    );
}

void SecretMask::apply(outbox::Verdict& verdict) const {
    if (secrets_.empty()) return;
    std::visit(
        outbox::Overloaded{
            [&](outbox::Found& v) {
                apply(v.result);
                apply(v.note);
            },
            [](outbox::Absent&) {},
            [&](outbox::Pending& v) { apply(v.note); },
            [&](auto& v) { apply(v.error); },
        },
        verdict
    );
}

void SecretMask::apply(std::string& text) const {
    for (const auto& secret : secrets_) {
        if (text.find(secret) != std::string::npos) {
            boost::algorithm::replace_all(text, secret, "***");
        }
    }
}

void SecretMask::apply(outbox::Error& error) const {
    apply(error.code);
    apply(error.message);
}

void SecretMask::apply(outbox::Json& value) const {
    if (const auto* text = value.as_string()) {
        auto masked = *text;
        apply(masked);
        if (masked != *text) value = outbox::Json(std::move(masked));
    } else if (auto* items = value.as_array()) {
        for (auto& item : *items) apply(item);
    } else if (auto* members = value.as_object()) {
        for (auto& [key, member] : *members) {
            apply(key);
            apply(member);
        }
    }
}

}  // namespace tools
