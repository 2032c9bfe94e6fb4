#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "outbox/clock.hpp"
#include "outbox/lane_gate.hpp"
#include "outbox/operation.hpp"
#include "outbox/outcome.hpp"
#include "outbox/policy.hpp"
#include "outbox/transition.hpp"

namespace outbox {

namespace asio = boost::asio;

// What it takes to record a success in the transaction of the effect itself, for tools whose effect
// lies in the outbox's own database. A copy may go to another thread.
struct OwnAttempt {
    Seq seq;
    Epoch epoch;
    DbTime leased_at;  // with the epoch: this very lease
    // The write that ends the operation, ready to be stored; pure.
    std::function<Transition(Outcome)> decide;
};

// What an adapter gets to see of an operation. The provider key is a member, so no adapter can
// forget it, and it is the same for every attempt.
struct ToolCall {
    Intent intent;
    std::string provider_key;  // {{ operation.key }}
    int attempt = 1;
    DbTime first_sent_at;
    bool ambiguous = false;  // an earlier attempt ended unknown, believed absent since
    // Attempts of tools whose policy says own_transaction: what to record in it, and where to leave
    // the transition that was committed together with the effect. Nobody records that attempt
    // again. `written` outlives the call.
    std::optional<OwnAttempt> own{};
    std::optional<Transition>* written = nullptr;
    // Attempts: stores what the attempt can be asked about by later (an MCP task's id), before the
    // adapter relies on it. False: it could not be stored; ask again. Empty: nobody stores it.
    std::function<asio::awaitable<bool>(std::string)> keep_handle{};
    // Probes: what the attempt in doubt left so. Never of an attempt that was sent under another
    // configuration: another server may know the same name for something else.
    std::optional<std::string> handle{};
};

// One way for an effect to leave the process. Chosen by name at run time; built by tools/ from
// the configuration; owned by the Toolset; runs on the io thread.
class Tool {
 public:
    virtual ~Tool() = default;

    // Performs the effect at most once. Never throws for what the other side did; whatever it
    // throws all the same becomes Unknown. Must not write a first byte once the deadline passed.
    virtual asio::awaitable<Outcome> execute(ToolCall call, Deadline deadline) = 0;

    // Asks whether it happened; has no effect. A failed look-up is Inconclusive, never Absent.
    virtual asio::awaitable<Verdict> probe(ToolCall call, Deadline deadline) = 0;

    // Its attempts may leave a handle, so that its probes want to know it.
    [[nodiscard]] virtual bool leaves_handles() const { return false; }
};

struct ToolEntry {
    ToolPolicy policy;
    std::unique_ptr<Tool> tool;
    std::shared_ptr<LaneGate> gate = nullptr;        // of attempts; null: always open
    std::shared_ptr<LaneGate> probe_gate = nullptr;  // of probes; the same one for resend
};

// The tools of one configuration, by name. Attempts in flight keep the one they began with.
class Toolset {
 public:
    void add(ToolEntry entry) {
        auto name = entry.policy.name;
        entries_.insert_or_assign(std::move(name), std::move(entry));
    }
    [[nodiscard]] const ToolEntry* find(const std::string& name) const {
        auto found = entries_.find(name);
        return found == entries_.end() ? nullptr : &found->second;
    }
    [[nodiscard]] const std::unordered_map<std::string, ToolEntry>& all() const { return entries_; }

 private:
    std::unordered_map<std::string, ToolEntry> entries_;
};

}  // namespace outbox
