#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_coroutine.hpp"
#include "tools/compiled_tool.hpp"
#include "tools/http_sender.hpp"

namespace test {

using namespace std::chrono_literals;
using outbox::Json;

// A value as the configuration reader hands it on.
[[nodiscard]] config::Value yaml(const std::string& text);

// A whole configuration; `tools` is the section's YAML, indented by two. Errors fail the test.
[[nodiscard]] config::Config configuration(const std::string& tools, const std::string& rest = {});
// Whether such a configuration loads and each of its tools compiles.
[[nodiscard]] bool compiles(const std::string& tools);

[[nodiscard]] Json json(const std::string& text);

// Operation op-1 with the key "key-1" and these arguments.
[[nodiscard]] outbox::ToolCall call_with(const std::string& arguments);
[[nodiscard]] outbox::ToolCall call_of(Json arguments);

// What was reported, one line each: "error: message (hint)".
[[nodiscard]] std::string all_of(const config::Diagnostics& diagnostics);

// Answers in the order of the script and keeps the requests.
class ScriptedSender final : public tools::HttpSender {
 public:
    std::deque<tools::HttpResult> answers;
    std::vector<tools::HttpRequest> requests;

    boost::asio::awaitable<tools::HttpResult> send(
        tools::HttpRequest request, outbox::Deadline deadline
    ) override;

    ScriptedSender& answer(
        int status, std::string body = {}, std::string header = {}, std::string value = {}
    );
    ScriptedSender& truncated(int status, std::string body);
    ScriptedSender& fail(bool sent, outbox::Cause cause, std::string code);
};

// One tool of a configuration over a scripted client.
class HttpToolFixture {
 public:
    // The YAML of one tool's members, indented by four.
    explicit HttpToolFixture(const std::string& members, const std::string& rest = {});

    [[nodiscard]] outbox::Outcome perform(const std::string& arguments = "{}");
    [[nodiscard]] outbox::Verdict ask(const std::string& arguments = "{}");

    std::shared_ptr<ScriptedSender> sender = std::make_shared<ScriptedSender>();

 private:
    boost::asio::io_context io_;
    std::unique_ptr<tools::HttpAction> action_;
    std::unique_ptr<tools::HttpProbe> probe_;
};

template <class T, class Variant>
const T& get(const Variant& variant) {
    INFO("the variant holds alternative " << variant.index());
    REQUIRE(std::holds_alternative<T>(variant));
    return std::get<T>(variant);
}

}  // namespace test
