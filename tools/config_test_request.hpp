#pragma once

#include <string>

#include "config/config.hpp"
#include "tools/config_test_checks.hpp"
#include "tools/rendered.hpp"
#include "tools/sent_request.hpp"

namespace tools {

// request: of a test, compared with what the tool sends. Only what is named is compared.
void check_request(
    TestChecks& checks,
    const config::ExpectedRequest& expected,
    const Rendered<SentRequest>& sent,
    const std::string& what
);

}  // namespace tools
