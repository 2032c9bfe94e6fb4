#include "daemon/ticket_desk_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace outboxd {

namespace {

using Behaviour = DeskRule::Behaviour;
constexpr std::array<std::pair<std::string_view, Behaviour>, 9> kBehaviours = {{
    {"drop_before", Behaviour::drop_before},
    {"drop_after", Behaviour::drop_after},
    {"error_before", Behaviour::error_before},
    {"error_after", Behaviour::error_after},
    {"delay_before", Behaviour::delay_before},
    {"delay_after", Behaviour::delay_after},
    {"hold_before", Behaviour::hold_before},
    {"hold_after", Behaviour::hold_after},
    {"refuse", Behaviour::refuse},
}};

}  // namespace

std::optional<std::int64_t> to_number(const std::string& text) {
    std::int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::optional<std::string> text_member(const outbox::Json& object, const char* name) {
    const auto* member = object.find(name);
    const auto* text = member != nullptr ? member->as_string() : nullptr;
    if (text == nullptr) return std::nullopt;
    return *text;
}

std::optional<std::int64_t> number_member(const outbox::Json& object, const char* name) {
    const auto* member = object.find(name);
    const auto* number = member != nullptr ? member->as_number() : nullptr;
    if (number == nullptr) return std::nullopt;
    return to_number(number->text);
}

std::variant<DeskRule, std::string> read_rule(const std::string& body) {
    auto parsed = outbox::parse_json(body);
    if (!parsed.value || parsed.value->as_object() == nullptr) return "The body is no JSON object.";
    const auto& object = *parsed.value;
    DeskRule rule;
    auto name = text_member(object, "behaviour").value_or("");
    auto known = std::find_if(kBehaviours.begin(), kBehaviours.end(), [&](const auto& entry) {
        return entry.first == name;
    });
    if (known == kBehaviours.end()) return "There is no behaviour \"" + name + "\".";
    rule.behaviour = known->second;
    auto on = text_member(object, "on").value_or("create");
    if (on != "create" && on != "list") return "`on` is create or list.";
    rule.on_list = on == "list";
    rule.external_ref = text_member(object, "external_ref");
    rule.title = text_member(object, "title");
    rule.next = number_member(object, "next").value_or(rule.next);
    rule.delay_ms = number_member(object, "delay_ms").value_or(rule.delay_ms);
    rule.retry_after = number_member(object, "retry_after");
    auto status = number_member(object, "status").value_or(rule.status);
    if (status < 200 || status > 599) return "`status` is a number from 200 to 599.";
    rule.status = static_cast<int>(status);
    return rule;
}

bool matches(
    const DeskRule& rule, bool on_list, const std::string& external_ref, const std::string& title
) {
    return rule.on_list == on_list && rule.next != 0 &&
           (!rule.external_ref || *rule.external_ref == external_ref) &&
           (!rule.title || *rule.title == title);
}

}  // namespace outboxd
