#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

namespace outbox {

namespace asio = boost::asio;

// Named places where a test may stop, delay or kill the process. Always compiled: the binary that
// ships is the binary that was tested.
enum class FailpointId {
    before_lease,                 // nothing is journaled yet
    after_lease_before_dispatch,  // journaled, not a byte sent
    before_first_byte,            // connected, about to write the request
    after_effect_before_complete, // the answer is read, nothing recorded
    before_complete,              // the completion batch is about to be written
    after_complete_before_ack,    // written, this process does not know it yet
    before_probe,                 // claimed, not asked yet
    after_probe_before_settle,    // the verdict is known, not recorded
    before_maintain,              // before promotion and expiry
};
inline constexpr std::array kFailpointNames = {
    "before_lease", "after_lease_before_dispatch", "before_first_byte",
    "after_effect_before_complete", "before_complete", "after_complete_before_ack",
    "before_probe", "after_probe_before_settle", "before_maintain",
};

// Owned by the application, passed by reference; all off by default. Used on the io thread.
// Specification, comma separated: name=action[:argument][*count][@skip], with the actions
// crash (_Exit), throw, delay:250ms, and pause (until the file named by the argument exists).
class Failpoints {
  public:
    // Empty when all is well, else what is wrong with the specification.
    [[nodiscard]] std::string arm(std::string_view specification);

    // One predictable branch when nothing is armed.
    asio::awaitable<void> hit(FailpointId id);
    [[nodiscard]] bool armed() const { return armed_; }

  private:
    struct Action {
        enum class Kind { none, crash, throw_, delay, pause } kind = Kind::none;
        std::string argument;
        int remaining = -1;  // times it fires; −1 without end
        int skip = 0;
    };
    asio::awaitable<void> fire(FailpointId id);

    bool armed_ = false;
    std::array<Action, kFailpointNames.size()> actions_{};
};

}  // namespace outbox
