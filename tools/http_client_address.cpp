#include "tools/http_client_address.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace tools {

namespace ip = boost::asio::ip;

namespace {

struct Range {
    std::uint32_t base;
    int bits;
};
constexpr std::array<Range, 13> kPrivate = {{
    {0x00000000, 8},   // this network
    {0x0a000000, 8},   // private
    {0x64400000, 10},  // shared by carriers
    {0x7f000000, 8},   // loopback
    {0xa9fe0000, 16},  // link-local, cloud metadata
    {0xac100000, 12},  // private
    {0xc0000000, 24},  // protocol assignments
    {0xc0000200, 24},  // documentation
    {0xc0a80000, 16},  // private
    {0xc6120000, 15},  // benchmarks
    {0xc6336400, 24},  // documentation
    {0xcb007100, 24},  // documentation
    {0xe0000000, 3},   // multicast, reserved, broadcast
}};

bool is_private_v4(std::uint32_t address) {
    return std::any_of(kPrivate.begin(), kPrivate.end(), [&](Range range) {
        return (address >> (32 - range.bits)) == (range.base >> (32 - range.bits));
    });
}

std::uint32_t v4_at(const ip::address_v6::bytes_type& bytes, std::size_t at) {
    return (std::uint32_t{bytes[at]} << 24) | (std::uint32_t{bytes[at + 1]} << 16) |
           (std::uint32_t{bytes[at + 2]} << 8) | bytes[at + 3];
}

bool is_private_v6(const ip::address_v6& address) {
    auto bytes = address.to_bytes();
    bool zeros = std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; });
    if (zeros && bytes[10] == 0xff && bytes[11] == 0xff) return is_private_v4(v4_at(bytes, 12));
    if (zeros && bytes[10] == 0 && bytes[11] == 0) return true;  // ::, ::1, IPv4-compatible
    if (bytes[0] == 0x00 && bytes[1] == 0x64 && bytes[2] == 0xff && bytes[3] == 0x9b) {
        // NAT64; 64:ff9b:1::/48 is for private use
        return bytes[5] == 1 || is_private_v4(v4_at(bytes, 12));
    }
    if (bytes[0] == 0x20 && bytes[1] == 0x02) return is_private_v4(v4_at(bytes, 2));  // 6to4
    // 2001::/23 protocol assignments (Teredo among them), 2001:db8::/32 documentation
    if (bytes[0] == 0x20 && bytes[1] == 0x01) {
        return bytes[2] < 2 || (bytes[2] == 0x0d && bytes[3] == 0xb8);
    }
    // Only 2000::/3 is global: fc00::/7, fe80::/10, fec0::/10, ff00::/8 and the rest are not.
    return (bytes[0] & 0xe0) != 0x20;
}

}  // namespace

bool is_private(const ip::address& address) {
    return address.is_v4() ? is_private_v4(address.to_v4().to_uint())
                           : is_private_v6(address.to_v6());
}

}  // namespace tools
