#include "tests/unit/tools/tool_fixture.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/load.hpp"
#include "config/yaml.hpp"

namespace test {

config::Value yaml(const std::string& text) {
    config::Diagnostics diagnostics;
    auto value =
        config::parse_yaml(std::make_shared<const std::string>("test.yaml"), text, diagnostics);
    INFO(all_of(diagnostics));
    REQUIRE_FALSE(diagnostics.has_errors());
    REQUIRE(value.has_value());
    return *value;
}

namespace {

config::Loaded loaded(const std::string& tools, const std::string& rest) {
    const auto path = std::filesystem::temp_directory_path() /
                      ("outbox-unit-tools-" + std::to_string(::getpid()) + ".yaml");
    {
        std::ofstream file(path);
        file << "version: 1\ndatabase: { dsn: host=/nowhere }\n" << rest << "\ntools:\n" << tools;
    }
    auto config = config::load(path.string());
    std::filesystem::remove(path);
    return config;
}

}  // namespace

config::Config configuration(const std::string& tools, const std::string& rest) {
    const auto read = loaded(tools, rest);
    INFO(all_of(read.diagnostics));
    REQUIRE(read.config.has_value());
    return *read.config;
}

bool compiles(const std::string& tools) {
    auto read = loaded(tools, {});
    if (!read.config || read.diagnostics.has_errors()) return false;
    for (const auto& tool : read.config->tools) {
        (void)tools::compile_tool(tool, *read.config, read.diagnostics);
    }
    return !read.diagnostics.has_errors();
}

Json json(const std::string& text) {
    auto parsed = outbox::parse_json(text);
    INFO(text << ": " << parsed.error);
    REQUIRE(parsed.value.has_value());
    return *parsed.value;
}

outbox::ToolCall call_of(Json arguments) {
    outbox::ToolCall call;
    call.intent.id = outbox::OperationId("op-1");
    call.intent.tool = "create_ticket";
    call.intent.arguments = std::move(arguments);
    call.intent.created_at = outbox::DbTime{1'767'323'045s};  // 2026-01-02T03:04:05Z
    call.first_sent_at = outbox::DbTime{1'767'323'046s};
    call.provider_key = "key-1";
    call.attempt = 2;
    return call;
}

outbox::ToolCall call_with(const std::string& arguments) {
    return call_of(json(arguments));
}

std::string all_of(const config::Diagnostics& diagnostics) {
    std::string out;
    for (const auto& d : diagnostics.all()) {
        out += d.severity == config::Severity::error ? "error: " : "warning: ";
        out += d.message + " (" + d.hint + ")\n";
    }
    return out;
}

boost::asio::awaitable<tools::HttpResult> ScriptedSender::send(
    tools::HttpRequest request, outbox::Deadline
) {
    requests.push_back(std::move(request));
    REQUIRE_FALSE(answers.empty());  // else: a request that nobody expected
    auto next = std::move(answers.front());
    answers.pop_front();
    co_return next;
}

ScriptedSender& ScriptedSender::answer(
    int status, std::string body, std::string header, std::string value
) {
    tools::HttpResponse response;
    response.status = status;
    response.body = std::move(body);
    if (!header.empty()) response.headers.emplace_back(std::move(header), std::move(value));
    answers.emplace_back(std::move(response));
    return *this;
}

ScriptedSender& ScriptedSender::truncated(int status, std::string body) {
    tools::HttpResponse response;
    response.status = status;
    response.body = std::move(body);
    response.truncated = true;
    answers.emplace_back(std::move(response));
    return *this;
}

ScriptedSender& ScriptedSender::fail(bool sent, outbox::Cause cause, std::string code) {
    answers.emplace_back(tools::HttpFailure{sent, cause, {std::move(code), "as the script says"}});
    return *this;
}

HttpToolFixture::HttpToolFixture(const std::string& members, const std::string& rest) {
    const auto config = configuration("  tool:\n" + members, rest);
    config::Diagnostics diagnostics;
    auto compiled = tools::compile_tool(config.tools.front(), config, diagnostics);
    INFO(all_of(diagnostics));
    REQUIRE_FALSE(diagnostics.has_errors());
    REQUIRE(compiled.has_value());
    auto* execute = std::get_if<tools::HttpExecute>(&compiled->execute);
    REQUIRE(execute != nullptr);
    action_ = std::make_unique<tools::HttpAction>(std::move(*execute), sender);
    if (!compiled->lookup) return;
    auto* lookup = std::get_if<tools::HttpLookup>(&*compiled->lookup);
    REQUIRE(lookup != nullptr);
    probe_ = std::make_unique<tools::HttpProbe>(std::move(*lookup), sender);
}

outbox::Outcome HttpToolFixture::perform(const std::string& arguments) {
    return run_coroutine(
        io_, action_->perform(call_with(arguments), outbox::Deadline::after(5s)), 2s
    );
}

outbox::Verdict HttpToolFixture::ask(const std::string& arguments) {
    REQUIRE(probe_ != nullptr);
    return run_coroutine(io_, probe_->ask(call_with(arguments), outbox::Deadline::after(5s)), 2s);
}

}  // namespace test
