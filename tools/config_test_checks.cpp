#include "tools/config_test_checks.hpp"

#include <fmt/format.h>

#include "tools/value_template.hpp"

namespace tools {
namespace {

constexpr std::size_t kLongest = 2'000;

std::string shortened(std::string text) {
    if (text.size() <= kLongest) return text;
    const auto rest = text.size() - kLongest;
    text.resize(kLongest);
    return text + fmt::format("… ({} more bytes)", rest);
}

}  // namespace

outbox::Json json_of(const config::Value& value) {
    auto parsed = outbox::parse_json(plain_json_text(value));
    return parsed.value ? std::move(*parsed.value) : outbox::Json{};
}

bool TestChecks::check(
    bool holds, const config::Mark& mark, std::string what, std::string expected, std::string got
) {
    ++result_.checks;
    if (holds) return true;
    result_.failures.push_back(
        {mark, std::move(what), shortened(std::move(expected)), shortened(std::move(got))}
    );
    return false;
}

void TestChecks::equal(
    const std::optional<config::Text>& expected, const std::string& got, std::string what
) {
    if (!expected) return;
    check(expected->value == got, expected->mark, std::move(what), expected->value, got);
}

void TestChecks::equal(const config::Value& expected, const outbox::Json& got, std::string what) {
    const auto wanted = json_of(expected);
    check(
        got.equals(wanted),
        expected.mark,
        std::move(what),
        outbox::to_text(wanted),
        outbox::to_text(got)
    );
}

void TestChecks::named(
    const std::pair<config::Text, std::optional<config::Text>>& expected,
    const std::string* got,
    std::string what
) {
    const auto& [name, value] = expected;
    const bool holds = value ? got != nullptr && *got == value->value : got == nullptr;
    check(
        holds,
        value ? value->mark : name.mark,
        std::move(what),
        value ? value->value : "nothing of this name",
        got != nullptr ? *got : "nothing of this name"
    );
}

}  // namespace tools
