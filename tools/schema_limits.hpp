#pragma once

#include <cstddef>
#include <stdexcept>

namespace tools {

// What checking one operation's arguments may cost. The validator is recursive and knows no limits,
// and the arguments may be hostile: every look at a value counts as a step, and the stack that the
// recursion took is measured where it is, not guessed from a depth.
class SchemaWork {
 public:
    struct Exceeded : std::runtime_error {
        using std::runtime_error::runtime_error;
    };
    // Steps: an answer within a fraction of a second. Stack: a quarter of the usual 8 MiB.
    static constexpr std::size_t kSteps = 1'000'000;
    static constexpr std::size_t kStack = 2 * 1024 * 1024;

    // Limits everything this thread checks while the object lives; one at a time.
    SchemaWork();
    ~SchemaWork();
    SchemaWork(const SchemaWork&) = delete;
    SchemaWork& operator=(const SchemaWork&) = delete;

    // Counts steps against the limits of this thread, if there are any; throws Exceeded.
    static void spend(std::size_t steps = 1);

 private:
    std::size_t left_ = kSteps;
    const char* base_;
};

}  // namespace tools
