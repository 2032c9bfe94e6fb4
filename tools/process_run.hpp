#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "outbox/clock.hpp"
#include "tools/child_process.hpp"

namespace tools {

namespace asio = boost::asio;

// How a process ended, and what it said.
struct ProcessEnd {
    enum class How {
        not_started,  // code is errno: definitely no effect
        exited,       // code is the exit code
        signalled,    // code is the signal
        timed_out,    // the deadline passed; it was killed
        cut,          // the caller was cancelled; it was killed
    };
    How how = How::not_started;
    int code = 0;
    std::string output;  // cut at output_limit
    bool truncated = false;
    std::string errors;  // the beginning of standard error
};

// Runs a process to its end on the caller's executor, without blocking it. A keeper of its own
// kills it and all its descendants at the deadline, whatever happens to this process meanwhile. A
// descendant that keeps the pipes open after the process itself ended is waited for 1 s; none
// outlives the run, because what acts after an attempt's end would make a later "absent" a lie.
asio::awaitable<ProcessEnd> run_process(ProcessSpec spec, outbox::Deadline deadline);

}  // namespace tools
