#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace outboxd {

struct Console {
    std::ostream& out;
    std::ostream& err;
};

// The whole command line: parses, runs the command, and returns its exit code. The arguments do
// not hold the program's name.
[[nodiscard]] int run_cli(const std::vector<std::string>& arguments, Console console);

}  // namespace outboxd
