#pragma once

// Debian 12 has Catch2 2.13, Debian 13 has 3.7: one include for both.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>
// Version 2 calls Contains what version 3 calls ContainsSubstring.
inline auto ContainsSubstring(const std::string& text) {
    return Catch::Matchers::Contains(text);
}
#endif
