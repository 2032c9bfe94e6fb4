#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/bell.hpp"
#include "outbox/outcome.hpp"
#include "tests/sim/draw.hpp"
#include "tests/sim/sim_time.hpp"

namespace sim {

// A connection of one call: what came back on it, and who waits there. The other side keeps no
// hold of it, so an answer to a process that crashed goes nowhere.
template <class Answer>
struct Connection {
    explicit Connection(boost::asio::any_io_executor executor) : bell(std::move(executor)) {}
    void receive(Answer what) {
        answer = std::move(what);
        bell.ring();
    }
    std::optional<Answer> answer;
    outbox::Bell bell;
};
using Request = Connection<outbox::Outcome>;
using LookUp = Connection<outbox::Verdict>;

// The outside system, and the network to it. It knows no idempotency key, counts the effects of
// every operation, and its look-up lags behind. Its truth is what the simulation is judged by.
class Provider {
 public:
    Provider(const Draw& draw, Dice& dice) : draw_(draw), dice_(dice) {}

    // A first byte left: from here on it may happen, whatever becomes of the caller.
    void send(const std::string& id, int account, const std::shared_ptr<Request>& request);
    void look_up(const std::string& id, int account, const std::shared_ptr<LookUp>& look_up);
    // No more trouble from now on.
    void calm() { calm_ = true; }

    [[nodiscard]] int effects(const std::string& id) const;
    [[nodiscard]] bool has_result(const std::string& id, const std::string& result) const;

    // For the trace.
    std::function<void(const std::string& id, int effects)> on_effect;

 private:
    struct Record {  // of one effect, or of a job that was accepted
        int account = 0;
        std::string result;
        Time::Point visible_at;
        std::optional<Time::Point> done_at;  // a job's end; before it the look-up says pending
        bool effect = true;                  // a job may come to nothing
    };
    [[nodiscard]] bool trouble(double p) { return !calm_ && dice_.chance(p); }
    outbox::Outcome arrive(const std::string& id, int account);
    outbox::Outcome accept(const std::string& id, int account);
    std::string happen(const std::string& id, int account);
    outbox::Verdict answer(const std::string& id, int account);
    template <class Answer>
    void reply(const std::weak_ptr<Connection<Answer>>& to, Answer answer);

    const Draw& draw_;
    Dice& dice_;
    bool calm_ = false;
    std::map<std::string, std::vector<Record>> records_;
};

}  // namespace sim
