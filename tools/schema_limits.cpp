#include "tools/schema_limits.hpp"

namespace tools {
namespace {

struct Limits {
    std::size_t* left = nullptr;
    const char* base = nullptr;
};
thread_local Limits current;

const char* here() {
    return static_cast<const char*>(__builtin_frame_address(0));
}

}  // namespace

SchemaWork::SchemaWork() : base_(here()) {
    current = {&left_, base_};
}

SchemaWork::~SchemaWork() {
    current = {};
}

void SchemaWork::spend(std::size_t steps) {
    if (current.left == nullptr) return;
    const auto grown = static_cast<std::size_t>(current.base - here());
    if (grown > kStack) throw Exceeded("they are nested too deeply");
    // The library carries the path along and copies it, so a step costs more the deeper it is.
    constexpr std::size_t kStackPerStep = 16 * 1024;
    steps *= 1 + grown / kStackPerStep;
    if (*current.left < steps) throw Exceeded("checking them takes too long");
    *current.left -= steps;
}

}  // namespace tools
