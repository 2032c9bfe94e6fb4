#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/harness.hpp"

// The way into a harness for libFuzzer, which brings main().
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::run_input({reinterpret_cast<const char*>(data), size});
    return 0;
}
