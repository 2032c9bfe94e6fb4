// key: how an operation id becomes the provider's idempotency key.
#include <fmt/format.h>

#include <array>

#include "config/sections.hpp"

namespace config {
namespace {

struct Encoding {
    std::string_view name;
    std::size_t length;  // of the whole key
    std::size_t bits;    // in tenths, per character
};
constexpr std::array<Encoding, 5> kEncodings{{
    {"hex", 64, 40},
    {"uuid", 36, 0},
    {"base64url", 43, 60},
    {"base32hex", 52, 50},
    {"short", 22, 60},
}};
constexpr std::size_t kLeastBits = 96;

// What is wrong is reported at its place, which becomes the key's: said once.
void check_length(MapReader& in, Key& key) {
    const auto* at = in.value("max_length") ? in.value("max_length") : in.value("prefix");
    if (!at) return;
    const auto named = in.value("max_length") ? "max_length" : "prefix";
    for (const auto& encoding : kEncodings) {
        if (encoding.name != key.encoding) continue;
        const auto room =
            key.max_length > key.prefix.size() ? key.max_length - key.prefix.size() : 0;
        if (room >= encoding.length) return;
        key.mark = at->mark;
        if (encoding.bits == 0) {
            in.error(
                *at,
                named,
                fmt::format(
                    "a uuid needs {} characters and cannot be cut, {} are left",
                    encoding.length,
                    room
                ),
                "use encoding: short (22 characters), or a shorter prefix"
            );
        } else if (room * encoding.bits < kLeastBits * 10) {
            in.error(
                *at,
                named,
                fmt::format(
                    "{} characters are left for the key, {} bits: at least {} bits must remain",
                    room,
                    room * encoding.bits / 10,
                    kLeastBits
                ),
                "allow more, or use encoding: short or base64url (16 characters hold 96 bits)"
            );
        }
    }
}

}  // namespace

void read_key(MapReader& in, Key& out) {
    out.mark = in.key_mark();
    in.choice("encoding", out.encoding, {"hex", "uuid", "base64url", "base32hex", "short"});
    if (const auto* prefix = in.value("prefix"); prefix && !prefix->text.empty()) {
        in.string("prefix", out.prefix);
        for (const char c : out.prefix) {
            if (c > 0x20 && c < 0x7f) continue;
            out.mark = prefix->mark;
            in.error(
                *prefix,
                "prefix",
                "must be printable ASCII without spaces",
                "it becomes part of a header or a URL"
            );
            break;
        }
    }
    int max_length = static_cast<int>(out.max_length);
    if (in.integer("max_length", max_length, {16, 10'000})) {
        out.max_length = static_cast<std::size_t>(max_length);
    }
    in.duration_or_forever("window", out.window, {1s, kHorizons.max});
    out.window_given = in.has("window");
    check_length(in, out);
    in.finish();
}

}  // namespace config
