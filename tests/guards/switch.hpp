#pragma once

#include <cstdlib>
#include <cstring>

// For the copy of the tree that run.mjs builds, where each guard in C++ asks whether it is the one
// that is taken out. Nothing else includes this.
namespace guards {

inline bool out(const char* name) {
    static const char* const chosen = std::getenv("OUTBOX_GUARD");
    return chosen != nullptr && std::strcmp(chosen, name) == 0;
}

}  // namespace guards
