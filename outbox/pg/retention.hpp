#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace outbox::pg {

class Session;

// What retention takes away, each page in a short transaction of its own. A run begins with `after`
// 0 and goes on with the `next` of the page before, until there is no more.
enum class Prune { payloads, events };

struct PrunePage {
    std::int64_t pruned = 0;
    std::int64_t next = 0;
    bool more = false;
    bool busy = false;  // somebody else prunes at this moment: nothing was done
};

// Arguments and results of final operations, or events, that are older than that.
[[nodiscard]] PrunePage prune(
    Session& session, Prune what, std::chrono::milliseconds older_than, std::int64_t after, int rows
);

struct ForgottenTool {
    std::string tool;
    std::int64_t forgotten = 0;
    std::int64_t referenced = 0;  // kept: a planner's table points at it
};

struct ForgetPage {
    std::vector<ForgottenTool> tools;
    std::int64_t next = 0;
    bool more = false;
};

// The keys of final operations that ended longer ago than that: each may be executed again.
[[nodiscard]] ForgetPage forget_keys(
    Session& session,
    std::chrono::milliseconds older_than,
    std::int64_t after,
    int rows,
    bool dry_run
);

}  // namespace outbox::pg
