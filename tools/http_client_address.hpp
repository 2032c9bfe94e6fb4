#pragma once

#include <boost/asio/ip/address.hpp>

namespace tools {

// Loopback, private, link-local, unique-local, shared (100.64/10), unspecified, multicast or
// reserved: what a request that should reach the public internet has no business with. IPv4
// addresses inside IPv6 ones (mapped, NAT64, 6to4) are judged by what they carry.
[[nodiscard]] bool is_private(const boost::asio::ip::address& address);

}  // namespace tools
