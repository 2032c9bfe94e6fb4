#include "tools/secret_mask.hpp"

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <string_view>
#include <utility>

#include "config/mask.hpp"
#include "outbox/overloaded.hpp"
#include "tools/encoding.hpp"

namespace tools {
namespace {

constexpr std::size_t kShortest = 6;
constexpr std::size_t kLearned = 64;

void replace(std::string& text, const std::string& secret) {
    if (text.find(secret) != std::string::npos) {
        boost::algorithm::replace_all(text, secret, "***");
    }
}

// A text that was cut may end in the beginning of a secret.
void replace_cut(std::string& text, const std::string& secret) {
    for (auto size = std::min(secret.size() - 1, text.size()); size >= kShortest; --size) {
        if (!text.ends_with(std::string_view(secret).substr(0, size))) continue;
        text.replace(text.size() - size, size, "***");
        return;
    }
}

// What ${file:} and ${cred:} brought into a text of the file, and with `all` also ${env:}. Where
// two stand side by side they are one.
std::vector<std::string> brought_in(std::string_view source, std::string_view text, bool all) {
    std::vector<std::string> found;
    std::string literal;  // of the source, since the last substitution
    bool open = false;    // a substitution waits for the literal that ends it
    bool secret = false;  // … and is one
    std::size_t at = 0;   // in the text
    const auto close = [&](bool last) {
        const auto end =
            last ? text.size() - std::min(literal.size(), text.size()) : text.find(literal, at);
        if (end == std::string_view::npos || end < at) return false;
        if (open && secret) found.emplace_back(text.substr(at, end - at));
        at = end + literal.size();
        literal.clear();
        open = secret = false;
        return true;
    };
    for (std::size_t i = 0; i < source.size();) {
        if (source.compare(i, 3, "$${") == 0) {
            literal += "${";
            i += 3;
        } else if (source.compare(i, 2, "${") == 0) {
            const bool beside = open && literal.empty();
            if (!beside && !close(false)) return {std::string(text)};
            const auto body = source.substr(i + 2);
            open = true;
            secret = secret || all || body.starts_with("file:") || body.starts_with("cred:");
            i = std::min(source.find('}', i), source.size() - 1) + 1;
        } else {
            literal += source[i++];
        }
    }
    if (!close(true)) return {std::string(text)};
    return found;
}

// Whatever of a tool's file is a secret wherever it stands: in headers, bodies, environments,
// arguments. Of members whose name says so (API_TOKEN) also what ${env:} and the file itself say.
void collect(const config::Value& value, bool sensitive, std::vector<std::string>& secrets) {
    for (const auto& item : value.items) collect(item, sensitive, secrets);
    for (const auto& member : value.members) {
        collect(member.value, sensitive || config::is_sensitive_name(member.key), secrets);
    }
    if (!value.source.empty() && (value.from_secret || sensitive)) {
        for (auto& one : brought_in(value.source, value.text, sensitive)) {
            secrets.push_back(std::move(one));
        }
    } else if (sensitive && value.is(config::Value::Kind::string)) {
        if (value.text.find("{{") == std::string::npos) secrets.push_back(value.text);
    }
}

}  // namespace

SecretMask::SecretMask(
    const std::map<std::string, config::Credential>& credentials,
    const std::vector<config::Tool>& tools
) {
    for (const auto& tool : tools) {
        if (const auto* sql = std::get_if<config::Sql>(&tool.execute); sql && sql->dsn) {
            add_dsn(sql->dsn->value);
        }
        std::vector<std::string> secrets;
        for (const auto* part : {"execute", "reconcile", "compensate"}) {
            if (const auto* member = tool.source.find(part)) collect(*member, false, secrets);
        }
        for (const auto& secret : secrets) add(secret);
        if (!tool.reconcile_by) continue;
        if (const auto* sql = std::get_if<config::Sql>(&*tool.reconcile_by); sql && sql->dsn) {
            add_dsn(sql->dsn->value);
        }
    }
    using Kind = config::Credential::Kind;
    for (const auto& [name, credential] : credentials) {
        if (credential.kind == Kind::mtls) continue;  // its key leaves this process in no form
        const auto& secret = credential.secret.value;
        add(secret);
        const auto& user = credential.user_or_name;
        if (credential.kind == Kind::basic) add(base64(user + ":" + secret));
        if (credential.kind == Kind::oauth2_client_credentials) {
            add(base64(percent_encode(user) + ":" + percent_encode(secret)));
        }
    }
}

void SecretMask::add(const std::string& secret) {
    if (secret.size() < kShortest) return;
    if (std::find(secrets_.begin(), secrets_.end(), secret) != secrets_.end()) return;
    secrets_.push_back(secret);
    if (auto encoded = percent_encode(secret); encoded != secret) {
        secrets_.push_back(std::move(encoded));
    }
    std::stable_sort(secrets_.begin(), secrets_.end(), [](const auto& a, const auto& b) {
        return a.size() > b.size();
    });
}

void SecretMask::learn(const std::string& token) {
    if (token.size() < kShortest) return;
    if (std::find(learned_.begin(), learned_.end(), token) != learned_.end()) return;
    learned_.push_back(token);
    if (learned_.size() > kLearned) learned_.pop_front();
}

// The password in it, and the whole: drivers like to repeat what they could not read.
void SecretMask::add_dsn(const std::string& dsn) {
    add(dsn);
    const std::string_view text(dsn);
    if (const auto at = text.find("password="); at != std::string_view::npos) {
        const auto rest = text.substr(at + 9);
        const bool quoted = !rest.empty() && rest.front() == '\'';
        add(std::string(
            quoted ? rest.substr(1, rest.find('\'', 1) - 1)
                   : rest.substr(0, rest.find_first_of(" &"))
        ));
    }
    const auto scheme = text.find("://");
    if (scheme == std::string_view::npos) return;
    const auto host = text.find('@', scheme);
    const auto colon = text.find(':', scheme + 3);
    if (host != std::string_view::npos && colon < host) {
        add(std::string(text.substr(colon + 1, host - colon - 1)));
    }
}

void SecretMask::apply(outbox::Outcome& outcome) const {
    if (secrets_.empty() && learned_.empty()) return;
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
    if (secrets_.empty() && learned_.empty()) return;
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
    for (const auto& secret : secrets_) replace(text, secret);
    for (const auto& token : learned_) replace(text, token);
    for (const auto& secret : secrets_) replace_cut(text, secret);
    for (const auto& token : learned_) replace_cut(text, token);
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
