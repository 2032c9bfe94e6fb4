#include "outbox/pg/listener.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <algorithm>
#include <boost/asio/post.hpp>
#include <system_error>
#include <utility>

#include "outbox/pg/array_text.hpp"
#include "outbox/pg/pg_error.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kQuiet = 100ms;  // without work before a tool falls asleep
constexpr auto kPing = 1000ms;  // idle_session_timeout is five of these
constexpr milliseconds kFirstDelay = 100ms;
constexpr milliseconds kLongestReconnect = 2000ms;

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
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) {
        throw std::system_error(errno, std::generic_category(), "eventfd");
    }
    for (const auto& tool : options_.tools) {
        tools_.emplace(tool, ToolState{});
    }
}

Listener::~Listener() {
    stop();
    close(event_);
}

void Listener::start() {
    if (!thread_.joinable()) {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
}

void Listener::stop() {
    if (thread_.joinable()) {
        request_stop();
        thread_.join();
    }
}

void Listener::request_stop() {
    thread_.request_stop();
    poke();
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
        poke();
    }
}

void Listener::run(const std::stop_token& stop) {
    milliseconds delay = 0ms;
    while (!stop.stop_requested() && !poll_only_) {
        try {
            serve(stop);
            delay = 0ms;
        } catch (const StoreError&) {
            // The idle poll goes on meanwhile; the lanes report what is wrong with the database.
            delay = std::clamp<milliseconds>(delay * 2, kFirstDelay, kLongestReconnect);
        }
        if (listening_.exchange(false)) {
            delay = kFirstDelay;
        }
        if (!stop.stop_requested() && !poll_only_) {
            wait(-1, delay);
        }
    }
}

void Listener::serve(const std::stop_token& stop) {
    {
        std::scoped_lock lock(mutex_);  // the locks died with the last connection
        for (auto& [tool, state] : tools_) {
            state = ToolState{};
        }
    }
    Session session(options_.dsn, {}, nullptr);
    if (session.pooled()) {
        poll_only_ = true;
        return;
    }
    session.read(sql::listen_settings, {});
    try {
        Subscription subscription(
            session.connection(),
            "outbox_wake",
            [this](std::string_view tool) { notified(std::string(tool)); }
        );
        listening_ = true;
        for (const auto& tool : options_.tools) {
            wake(tool);  // something may have come while nobody listened
        }
        auto next_ping = steady_clock::now() + kPing;
        while (!stop.stop_requested()) {
            wake_up(session);
            fall_asleep(session);
            if (steady_clock::now() >= next_ping) {
                session.read(sql::backend_pid, {});
                next_ping = steady_clock::now() + kPing;
            }
            auto ping = std::chrono::ceil<milliseconds>(next_ping - steady_clock::now());
            wait(session.connection().sock(), std::min(ping, until_next_step()));
            session.connection().get_notifs();
            // On a dead connection get_notifs() may return as if nothing were wrong.
            if (!session.is_open() || session.connection().sock() < 0) {
                throw StoreError(StoreError::Kind::unavailable, "the LISTEN connection was lost");
            }
        }
    } catch (const std::exception& error) {
        rethrow_as_store_error(error, During::read);
    }
}

void Listener::notified(const std::string& tool) {
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
    auto longest = kPing;
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

void Listener::wait(int socket, milliseconds longest) {
    pollfd files[2] = {{event_, POLLIN, 0}, {socket, POLLIN, 0}};
    poll(files, socket < 0 ? 1 : 2, static_cast<int>(std::max<milliseconds>(longest, 0ms).count()));
    eventfd_t pokes = 0;
    eventfd_read(event_, &pokes);  // empty is fine, too
}

void Listener::poke() const {
    eventfd_write(event_, 1);
}

}  // namespace outbox::pg
