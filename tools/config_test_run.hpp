#pragma once

#include <string>
#include <vector>

#include "config/config.hpp"

namespace tools {

// An expectation of tests: that does not hold.
struct TestFailure {
    config::Mark mark;  // of the expectation
    std::string what;   // request.url
    std::string expected;
    std::string got;
};

struct TestResult {
    std::string name;
    std::string tool;
    config::Mark mark;
    int checks = 0;  // expectations that were looked at
    std::vector<TestFailure> failures;
};

// Runs tests: of a configuration that loaded, in the order of the file. No network, no process, no
// secret: everything shown can be.
[[nodiscard]] std::vector<TestResult> run_config_tests(const config::Config& config);

}  // namespace tools
