#pragma once

#include <optional>
#include <string>
#include <utility>

#include "config/config.hpp"
#include "outbox/json.hpp"
#include "tools/config_test_run.hpp"

namespace tools {

[[nodiscard]] outbox::Json json_of(const config::Value& value);

// The expectations of one test: counted, and kept where they do not hold.
class TestChecks {
 public:
    explicit TestChecks(TestResult& result) : result_(result) {}

    bool check(
        bool holds,
        const config::Mark& mark,
        std::string what,
        std::string expected,
        std::string got
    );
    void equal(
        const std::optional<config::Text>& expected, const std::string& got, std::string what
    );
    void equal(const config::Value& expected, const outbox::Json& got, std::string what);
    // null expects that nothing of the name is there.
    void named(
        const std::pair<config::Text, std::optional<config::Text>>& expected,
        const std::string* got,
        std::string what
    );

 private:
    TestResult& result_;
};

}  // namespace tools
