#include "outbox/pg/listener.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "outbox/pg/array_text.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kQuiet = 100ms;  // without work before a tool falls asleep
constexpr auto kPing = 2000ms;  // idle_session_timeout is 5 s
constexpr milliseconds kFirstDelay = 100ms;

std::string array_of(const std::vector<std::string>& tools) {
    ArrayText array;
    for (const auto& tool : tools) {
        array.add(std::string_view(tool));
    }
    return std::move(array).take();
}

}  // namespace

Listener::Listener(ListenerOptions options, asio::any_io_executor executor, OnWake on_wake)
    : options_(std::move(options)),
      executor_(std::move(executor)),
      on_wake_(std::move(on_wake)),
      thread_({options_.dsn, "outbox_wake", kPing}, *this) {
    for (const auto& tool : options_.tools) {
        tools_.emplace(tool, ToolState{});
    }
}

void Listener::polled(const std::string& tool, bool found_work) {
    bool changed = false;
    {
        std::scoped_lock lock(mutex_);
        auto found = tools_.find(tool);
        if (found == tools_.end()) {
            return;
        }
        auto& state = found->second;
        if (found_work) {
            changed = state.asleep;
            state.idle_since.reset();
        } else if (!state.idle_since) {
            changed = true;
            state.idle_since = steady_clock::now();
            state.delay = 0ms;
            state.next_try = *state.idle_since + kQuiet;
        }
    }
    if (changed) {
        thread_.poke();
    }
}

void Listener::connecting() {
    std::scoped_lock lock(mutex_);  // the locks died with the last connection
    for (auto& [tool, state] : tools_) {
        state = ToolState{};
    }
}

void Listener::prepare(Session& session) {
    session.read(sql::listen_settings, {});
}

void Listener::subscribed() {
    for (const auto& tool : options_.tools) {
        wake(tool);  // something may have come while nobody listened
    }
}

milliseconds Listener::step(Session& session) {
    wake_up(session);
    fall_asleep(session);
    return until_next_step();
}

void Listener::heard(std::string_view payload) {
    const std::string tool(payload);
    {
        std::scoped_lock lock(mutex_);
        auto found = tools_.find(tool);
        if (found == tools_.end()) {
            return;  // another daemon's tool
        }
        found->second.idle_since.reset();
    }
    wake(tool);
}

// Gives back the locks of tools that had a wake-up or found work.
void Listener::wake_up(Session& session) {
    std::vector<std::string> tools;
    {
        std::scoped_lock lock(mutex_);
        for (auto& [tool, state] : tools_) {
            if (state.asleep && !state.idle_since) {
                state.asleep = false;
                tools.push_back(tool);
            }
        }
    }
    if (!tools.empty()) {
        session.read(sql::wake_up, {array_of(tools)});
    }
}

// Takes the locks of quiet tools and has them polled once more, in a later statement. A lock that
// cannot be had belongs to an open planner transaction or to another sleeping daemon.
void Listener::fall_asleep(Session& session) {
    std::vector<std::string> tools;
    auto now = steady_clock::now();
    {
        std::scoped_lock lock(mutex_);
        for (auto& [tool, state] : tools_) {
            if (!state.asleep && state.idle_since && now >= *state.idle_since + kQuiet &&
                now >= state.next_try) {
                tools.push_back(tool);
            }
        }
    }
    if (tools.empty()) {
        return;
    }
    std::vector<std::string> asleep;
    auto rows = session.read(sql::fall_asleep, {array_of(tools)});
    {
        std::scoped_lock lock(mutex_);
        for (const auto& row : rows) {
            auto& state = tools_.at(row["tool"].c_str());
            if (row["locked"].as<bool>()) {
                state.asleep = true;
                state.delay = 0ms;
                asleep.emplace_back(row["tool"].c_str());
            } else {
                state.delay = std::clamp<milliseconds>(
                    state.delay * 2, kFirstDelay, std::max(kFirstDelay, options_.idle_poll)
                );
                state.next_try = steady_clock::now() + state.delay;
            }
        }
    }
    for (const auto& tool : asleep) {
        wake(tool);
    }
}

void Listener::wake(const std::string& tool) {
    asio::post(executor_, [this, tool] { on_wake_(tool); });
}

milliseconds Listener::until_next_step() {
    auto now = steady_clock::now();
    milliseconds longest = kPing;
    std::scoped_lock lock(mutex_);
    for (const auto& [tool, state] : tools_) {
        if (state.asleep && !state.idle_since) {
            return 0ms;
        }
        if (!state.asleep && state.idle_since) {
            auto at = std::max(*state.idle_since + kQuiet, state.next_try);
            longest = std::min(longest, std::chrono::ceil<milliseconds>(at - now));
        }
    }
    return std::max(longest, milliseconds(0));
}

}  // namespace outbox::pg
