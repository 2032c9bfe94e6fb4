#pragma once

#include <optional>
#include <string>
#include <string_view>

// How text is written into places that give some characters a meaning of their own.
namespace tools {

// Everything but A-Z a-z 0-9 - . _ ~ becomes %XX: safe as a path segment's part, as a query or
// form name or value.
[[nodiscard]] std::string percent_encode(std::string_view text);

[[nodiscard]] std::string base64(std::string_view bytes);
// Strict: the alphabet of RFC 4648, padding whole or left out; empty when it is none.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);
[[nodiscard]] std::string base64url(std::string_view bytes);  // without padding
[[nodiscard]] std::string base32hex(std::string_view bytes);  // lower case, without padding
[[nodiscard]] std::string hex(std::string_view bytes);

// The 32 bytes behind a text: its own when it is the hex of a digest (operation.key, | sha256),
// else its SHA-256. So `| uuid` and `| short` of the default key are the key in that encoding.
[[nodiscard]] std::string digest_bytes(std::string_view text);
[[nodiscard]] std::string digest_uuid(std::string_view text);   // version 4 bits set
[[nodiscard]] std::string digest_short(std::string_view text);  // 22 characters of base64url

// A string literal of Jira's query language, quotes included.
[[nodiscard]] std::string jql_literal(std::string_view text);
// Character data or a quoted attribute; empty when XML cannot hold it (control characters).
[[nodiscard]] std::optional<std::string> xml_escape(std::string_view text);
// A TEXT value of RFC 5545; empty when it cannot hold it (control characters).
[[nodiscard]] std::optional<std::string> ical_escape(std::string_view text);

// True for CR, LF, NUL and the other C0 controls and DEL.
[[nodiscard]] bool has_control(std::string_view text);

}  // namespace tools
