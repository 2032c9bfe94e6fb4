#include <fmt/format.h>

#include <algorithm>

#include "config/nearest.hpp"
#include "config/sections.hpp"
#include "config/substitute.hpp"

namespace config {
namespace {

using Kind = Credential::Kind;

constexpr const char* kKinds =
    "one of: bearer, basic, header, query, oauth2_client_credentials, standard_webhooks, mtls";

void check_header_safe(
    const Value& at, const std::string& secret, MapReader& in, std::string_view key
) {
    const bool safe = std::none_of(secret.begin(), secret.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (!safe)
        in.error(
            at,
            key,
            "holds a line end or another control character",
            "it could not be sent in a header"
        );
}

// The text of the file that the member names; reported when there is none.
bool read_named_file(
    MapReader& in, const Value::Member& named, std::string& path, std::string& text
) {
    if (!in.string(named.key, path)) return false;
    auto read = read_secret_file(path);
    if (read.text && !read.text->empty()) {
        text = std::move(*read.text);
        return true;
    }
    in.error(
        named.value,
        named.key,
        fmt::format(
            "cannot read {}: {}", shown(named.value), read.text ? "the file is empty" : read.error
        ),
        "does it exist, and may this user read it?"
    );
    return false;
}

// `key: value` or `key_file: path`.
void read_secret(MapReader& in, std::string_view key, Secret& out) {
    const auto file_key = fmt::format("{}_file", key);
    const auto* named = in.member(file_key);
    const auto* given = in.member(key);
    if (given && named) {
        in.diagnostics().error(
            named->key_mark,
            fmt::format("{0}.{1} and {0}.{2} exclude each other", in.path(), key, file_key),
            "keep one"
        );
        return;
    }
    if (named) {
        std::string path;
        out.mark = named->value.mark;
        if (!read_named_file(in, *named, path, out.value)) return;
        out.source = fmt::format("${{file:{}}}", path);
        check_header_safe(named->value, out.value, in, file_key);
        return;
    }
    if (!in.require(key, fmt::format("{}: ${{cred:name}}, or {}: /path", key, file_key))) return;
    out.mark = given->value.mark;
    if (!in.string(key, out.value)) return;
    out.source = given->value.source;
    check_header_safe(given->value, out.value, in, key);
    if (out.source.empty() && out.value != "***") {
        in.diagnostics().warning(
            given->value.mark,
            fmt::format("{}.{}: a secret in the file itself", in.path(), key),
            "use ${cred:name}, ${file:/path} or ${env:VAR}"
        );
    }
}

void read_name(MapReader& in, std::string_view key, std::string& out, std::string hint) {
    if (in.require(key, std::move(hint))) in.string(key, out);
}

void read_basic(MapReader& in, Credential& out) {
    read_name(in, "username", out.user_or_name, "username: who logs in");
    read_secret(in, "password", out.secret);
    if (out.user_or_name.find(':') == std::string::npos) return;
    in.error(
        *in.value("username"), "username", "must not hold a colon", "HTTP Basic ends the name there"
    );
}

void read_oauth2(MapReader& in, Credential& out) {
    if (in.require("token_url", "for example token_url: https://auth.example.com/oauth2/token")) {
        in.text("token_url", out.token_url);
    }
    if (out.token_url.value.find("{{") != std::string::npos) {
        in.error(
            *in.value("token_url"),
            "token_url",
            "a template where there is no operation",
            "a token serves all operations: write the address out"
        );
    }
    read_name(in, "client_id", out.user_or_name, "client_id: as whom the token is asked for");
    read_secret(in, "client_secret", out.secret);
    std::string how = "basic";
    in.choice("client_auth", how, {"basic", "post"});
    out.secret_in_body = how == "post";
    in.string("scope", out.scope);
    in.string("audience", out.audience);
}

void read_mtls(MapReader& in, Credential& out) {
    if (in.require("cert_file", "cert_file: /path of the certificate (PEM), its chain behind it")) {
        const auto& named = *in.member("cert_file");
        out.cert_mark = named.value.mark;
        read_named_file(in, named, out.cert_file, out.certificate);
    }
    if (in.require("key_file", "key_file: /path of its private key (PEM)")) {
        const auto& named = *in.member("key_file");
        out.secret.mark = named.value.mark;
        if (read_named_file(in, named, out.key_file, out.secret.value)) {
            out.secret.source = fmt::format("${{file:{}}}", out.key_file);
        }
    }
}

void read_one(MapReader& in, Credential& out) {
    const auto* kind = in.require("kind", kKinds);
    if (!kind || kind->value.unresolved) return;
    std::string name;
    if (!in.choice(
            "kind",
            name,
            {"bearer",
             "basic",
             "header",
             "query",
             "oauth2_client_credentials",
             "standard_webhooks",
             "mtls"}
        )) {
        return;
    }
    if (name == "bearer") {
        out.kind = Kind::bearer;
        read_secret(in, "token", out.secret);
    } else if (name == "basic") {
        out.kind = Kind::basic;
        read_basic(in, out);
    } else if (name == "oauth2_client_credentials") {
        out.kind = Kind::oauth2_client_credentials;
        read_oauth2(in, out);
    } else if (name == "standard_webhooks") {
        out.kind = Kind::standard_webhooks;
        read_secret(in, "secret", out.secret);
    } else if (name == "mtls") {
        out.kind = Kind::mtls;
        read_mtls(in, out);
    } else {
        out.kind = name == "header" ? Kind::header : Kind::query;
        read_name(
            in,
            "name",
            out.user_or_name,
            fmt::format("name: of the {}", name == "header" ? "header" : "query parameter")
        );
        read_secret(in, "value", out.secret);
    }
    in.finish();
}

}  // namespace

std::vector<std::string> read_credentials(MapReader& root, Config& out) {
    std::vector<std::string> names;
    const auto* section = root.member("credentials");
    if (!section) return names;
    const MapReader all(&section->value, section->key_mark, "credentials", root.diagnostics());
    for (const auto& member : section->value.members) {
        names.push_back(member.key);
        if (!check_name(member, "credential", 64, root.diagnostics())) continue;
        MapReader in(
            &member.value,
            member.key_mark,
            fmt::format("credentials.{}", member.key),
            root.diagnostics()
        );
        Credential credential;
        credential.name = member.key;
        credential.mark = member.key_mark;
        if (member.value.is(Value::Kind::null) || in.is_mapping()) read_one(in, credential);
        out.credentials.emplace(member.key, std::move(credential));
    }
    return names;
}

}  // namespace config
