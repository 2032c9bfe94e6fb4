#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "outbox/failpoint.hpp"
#include "outbox/pg/batch.hpp"
#include "outbox/pg/session.hpp"
#include "outbox/store.hpp"

namespace outbox::pg {

// Writes one batch of transitions: finals and the others in one statement each, halved on a data
// error until the odd row is found, which alone takes the last resort, or on a lock time-out until
// the locked row is found, which alone is left for the next try. Runs on the complete lane.
class Completion {
 public:
    // The failpoints may be null.
    Completion(
        Session& session,
        const std::vector<Transition>& batch,
        const WorkerId& worker,
        Failpoints* failpoints
    );

    // One fate per transition, in order. Throws StoreError: conflict when rows stay locked by
    // somebody else, after all others were written; in_doubt and unavailable at once. Either way
    // the same batch may be handed in again: what was written is found and counts as applied.
    std::vector<Fate> run();

    // After run(): the operations of the batch that have ended, by this try or by an earlier one.
    [[nodiscard]] const std::vector<std::string>& ended() const { return ended_; }

 private:
    using Group = std::vector<const Transition*>;
    using Answers = std::unordered_map<std::int64_t, std::string>;

    void write(const Group& group, bool final);
    void write_or_split(const Group& group, bool final);
    void last_resort_of(const Transition& transition, bool final, const std::string& why);
    void ask_for_fates();
    void ask(const Group& group, Answers& answers);
    void end_with_late_effect(const Transition& transition);
    void note(const pqxx::result& written, bool final);
    [[nodiscard]] std::size_t index_of(const Transition& transition) const;

    Session& session_;
    const std::vector<Transition>& batch_;
    const WorkerId& worker_;
    Failpoints* failpoints_;
    std::vector<std::optional<Fate>> fates_;
    std::vector<bool> locked_;
    std::vector<std::string> ended_;
    std::optional<StoreError> conflict_;
};

}  // namespace outbox::pg
