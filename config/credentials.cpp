#include <fmt/format.h>

#include <algorithm>

#include "config/nearest.hpp"
#include "config/sections.hpp"
#include "config/substitute.hpp"

namespace config {
namespace {

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
        if (!in.string(file_key, path)) return;
        auto read = read_secret_file(path);
        if (!read.text || read.text->empty()) {
            in.error(
                named->value,
                file_key,
                fmt::format(
                    "cannot read {}: {}",
                    shown(named->value),
                    read.text ? "the file is empty" : read.error
                ),
                "does it exist, and may this user read it?"
            );
            return;
        }
        out.value = std::move(*read.text);
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

void read_one(MapReader& in, Credential& out) {
    const auto* kind = in.require("kind", "one of: bearer, basic, header, query");
    if (!kind || kind->value.unresolved) return;
    for (const auto* later : {"oauth2_client_credentials", "standard_webhooks", "mtls"}) {
        if (kind->value.text != later) continue;
        in.error(
            kind->value,
            "kind",
            fmt::format("{} is not in this version", later),
            "one of: bearer, basic, header, query"
        );
        return;
    }
    std::string name;
    if (!in.choice("kind", name, {"bearer", "basic", "header", "query"})) return;
    if (name == "bearer") {
        out.kind = Credential::Kind::bearer;
        read_secret(in, "token", out.secret);
    } else if (name == "basic") {
        out.kind = Credential::Kind::basic;
        read_name(in, "username", out.user_or_name, "username: who logs in");
        read_secret(in, "password", out.secret);
        if (out.user_or_name.find(':') != std::string::npos) {
            in.error(
                *in.value("username"),
                "username",
                "must not hold a colon",
                "HTTP Basic ends the name there"
            );
        }
    } else {
        out.kind = name == "header" ? Credential::Kind::header : Credential::Kind::query;
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
