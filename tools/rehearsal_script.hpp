#pragma once

#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "outbox/failpoint.hpp"
#include "tools/rehearsal.hpp"

namespace tools {

// The other side: answers in order, and what it was sent.
struct Script {
    std::deque<Rehearsal::Canned> answers;
    std::vector<SentRequest> sent;
    outbox::Failpoints failpoints;  // none is armed

    template <class Answer>
    Answer next(Answer nobody) {
        if (answers.empty()) return nobody;
        auto answer = std::move(answers.front());
        answers.pop_front();
        auto* fitting = std::get_if<Answer>(&answer);
        return fitting != nullptr ? std::move(*fitting) : nobody;
    }
};

}  // namespace tools
