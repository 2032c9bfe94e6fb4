#include "outbox/failpoint.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace outbox {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{10};

std::optional<int> parse_count(std::string_view text) {
    int value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || value < 0) {
        return std::nullopt;
    }
    return value;
}

std::optional<milliseconds> parse_delay(std::string_view text) {
    const bool in_ms = text.ends_with("ms");
    if (!in_ms && !text.ends_with('s')) return std::nullopt;
    text.remove_suffix(in_ms ? 2 : 1);
    const auto count = parse_count(text);
    if (!count) return std::nullopt;
    return in_ms ? milliseconds(*count) : milliseconds(*count * 1'000LL);
}

// Cuts "…<mark>N" off the end of `text`; false when N is no number.
bool cut_number(std::string_view& text, char mark, int& number) {
    const auto at = text.rfind(mark);
    if (at == std::string_view::npos) return true;
    const auto parsed = parse_count(text.substr(at + 1));
    if (!parsed) return false;
    number = *parsed;
    text = text.substr(0, at);
    return true;
}

asio::awaitable<void> sleep(milliseconds duration) {
    asio::steady_timer timer(co_await asio::this_coro::executor, duration);
    co_await timer.async_wait(asio::use_awaitable);
}

void tell_reached(const std::string& file) {
    std::ofstream(file + ".reached") << "reached\n";
}

}  // namespace

std::string Failpoints::arm(std::string_view specification) {
    auto actions = actions_;
    while (!specification.empty()) {
        const auto end = std::min(specification.find(','), specification.size());
        const std::string item(specification.substr(0, end));
        specification.remove_prefix(std::min(end + 1, specification.size()));
        if (item.empty()) continue;

        const auto equals = item.find('=');
        const auto name = item.substr(0, equals);
        const auto found = std::find(kFailpointNames.begin(), kFailpointNames.end(), name);
        if (found == kFailpointNames.end()) return "there is no failpoint " + name;
        if (equals == std::string::npos) return item + " lacks =action";

        Action action;
        std::string_view rest = std::string_view(item).substr(equals + 1);
        if (!cut_number(rest, '@', action.skip)) return item + ": @ takes a number";
        if (!cut_number(rest, '*', action.remaining)) return item + ": * takes a number";
        const auto colon = std::min(rest.find(':'), rest.size());
        const auto verb = rest.substr(0, colon);
        action.argument = rest.substr(std::min(colon + 1, rest.size()));
        if (verb == "crash") {
            action.kind = Action::Kind::crash;
        } else if (verb == "throw") {
            action.kind = Action::Kind::throw_;
        } else if (verb == "delay") {
            if (!parse_delay(action.argument)) return item + ": delay takes a duration (250ms, 2s)";
            action.kind = Action::Kind::delay;
        } else if (verb == "pause") {
            if (action.argument.empty()) return item + ": pause takes the path of a file";
            action.kind = Action::Kind::pause;
        } else {
            return item + ": the actions are crash, throw, delay and pause";
        }
        actions[static_cast<std::size_t>(found - kFailpointNames.begin())] = std::move(action);
    }
    actions_ = std::move(actions);
    armed_ = std::any_of(actions_.begin(), actions_.end(), [](const Action& action) {
        return action.kind != Action::Kind::none;
    });
    return {};
}

asio::awaitable<void> Failpoints::hit(FailpointId id) {
    if (armed_) [[unlikely]]
        co_await fire(id);
}

Failpoints::Action Failpoints::take(FailpointId id) {
    const auto index = static_cast<std::size_t>(id);
    const std::lock_guard lock(counting_);
    auto& action = actions_[index];
    if (action.kind == Action::Kind::none || action.remaining == 0) return {};
    if (action.skip > 0) {
        --action.skip;
        return {};
    }
    if (action.remaining > 0) --action.remaining;
    if (action.kind == Action::Kind::crash) std::_Exit(86);  // no destructor runs, as by SIGKILL
    if (action.kind == Action::Kind::throw_) {
        throw std::runtime_error(std::string("failpoint ") + kFailpointNames[index]);
    }
    return action;
}

asio::awaitable<void> Failpoints::fire(FailpointId id) {
    const Action action = take(id);
    if (action.kind == Action::Kind::delay) co_await sleep(*parse_delay(action.argument));
    if (action.kind != Action::Kind::pause) co_return;
    tell_reached(action.argument);
    while (!std::filesystem::exists(action.argument)) co_await sleep(kPoll);
}

void Failpoints::fire_blocking(FailpointId id) {
    const Action action = take(id);
    if (action.kind == Action::Kind::delay) {
        std::this_thread::sleep_for(*parse_delay(action.argument));
    }
    if (action.kind != Action::Kind::pause) return;
    tell_reached(action.argument);
    while (!std::filesystem::exists(action.argument)) std::this_thread::sleep_for(kPoll);
}

}  // namespace outbox
