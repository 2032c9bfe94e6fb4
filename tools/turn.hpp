#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <list>

#include "outbox/clock.hpp"

namespace tools {

namespace asio = boost::asio;

// One after the other: whoever has the turn does what the others then need not do again. Runs on
// the io thread; outlives its holders.
class Turn {
 public:
    // The turn itself; given back when it goes. False: it was not to be had before the deadline, or
    // the waiting was cancelled.
    class Held {
     public:
        explicit Held(Turn* turn) : turn_(turn) {}
        ~Held();
        Held(Held&& other) noexcept;
        Held& operator=(Held&&) = delete;
        explicit operator bool() const { return turn_ != nullptr; }

     private:
        Turn* turn_;
    };
    static asio::awaitable<Held> take(Turn& turn, outbox::Deadline deadline);

 private:
    bool taken_ = false;
    std::list<asio::steady_timer*> waiting_;
};

}  // namespace tools
