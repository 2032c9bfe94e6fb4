#include "outbox/pg/done_listener.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <system_error>
#include <utility>

#include "outbox/json.hpp"
#include "outbox/pg/pg_error.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// A connection that died without a word is noticed by then.
constexpr milliseconds kPing = 5000ms;
constexpr milliseconds kFirstDelay = 100ms;
constexpr milliseconds kLongestReconnect = 2000ms;

}  // namespace

DoneListener::DoneListener(std::string dsn, asio::any_io_executor executor, OnDone on_done)
    : dsn_(std::move(dsn)),
      executor_(std::move(executor)),
      on_done_(std::move(on_done)),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) {
        throw std::system_error(errno, std::generic_category(), "eventfd");
    }
}

DoneListener::~DoneListener() {
    stop();
    close(event_);
}

void DoneListener::start() {
    if (!thread_.joinable()) {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
}

void DoneListener::stop() {
    if (thread_.joinable()) {
        thread_.request_stop();
        eventfd_write(event_, 1);
        thread_.join();
    }
}

void DoneListener::run(const std::stop_token& stop) {
    milliseconds delay = 0ms;
    while (!stop.stop_requested() && !poll_only_) {
        try {
            serve(stop);
            delay = 0ms;
        } catch (const StoreError&) {
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

void DoneListener::serve(const std::stop_token& stop) {
    Session session(dsn_, {}, nullptr);
    if (session.pooled()) {
        poll_only_ = true;
        return;
    }
    try {
        Subscription subscription(
            session.connection(),
            "outbox_done",
            [this](std::string_view payload) { heard(payload); }
        );
        listening_ = true;
        auto next_ping = std::chrono::steady_clock::now() + kPing;
        while (!stop.stop_requested()) {
            const auto now = std::chrono::steady_clock::now();
            if (now >= next_ping) {
                session.read(sql::backend_pid, {});
                next_ping = now + kPing;
            }
            wait(session.connection().sock(), std::chrono::ceil<milliseconds>(next_ping - now));
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

// A JSON array of operation ids; what is none of ours is left alone.
void DoneListener::heard(std::string_view payload) {
    const auto parsed = parse_json(payload);
    const auto* array = parsed.value ? parsed.value->as_array() : nullptr;
    if (array == nullptr) {
        return;
    }
    std::vector<std::string> ids;
    for (const auto& one : *array) {
        if (const auto* id = one.as_string()) {
            ids.push_back(*id);
        }
    }
    asio::post(executor_, [this, ids = std::move(ids)] { on_done_(ids); });
}

void DoneListener::wait(int socket, milliseconds longest) {
    pollfd files[2] = {{event_, POLLIN, 0}, {socket, POLLIN, 0}};
    poll(files, socket < 0 ? 1 : 2, static_cast<int>(std::max<milliseconds>(longest, 0ms).count()));
    eventfd_t pokes = 0;
    eventfd_read(event_, &pokes);  // empty is fine, too
}

}  // namespace outbox::pg
