#include "outbox/pg/notify_thread.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "outbox/pg/pg_error.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstDelay = 100ms;
constexpr milliseconds kLongestReconnect = 2000ms;
constexpr milliseconds kOrderly = 1000ms;  // for a statement under way, when it is to stop

}  // namespace

// While it lives, stop() can reach the connection. By a descriptor of its own: libpq closes its one
// when it finds the connection lost, and the number may be another's a moment later.
class NotifyThread::Socket {
 public:
    Socket(NotifyThread& owner, int socket)
        : owner_(owner), socket_(fcntl(socket, F_DUPFD_CLOEXEC, 0)) {
        set(socket_);
    }
    ~Socket() {
        set(-1);
        if (socket_ >= 0) close(socket_);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

 private:
    void set(int socket) {
        std::scoped_lock lock(owner_.mutex_);
        owner_.socket_ = socket;
    }
    NotifyThread& owner_;
    int socket_;
};

NotifyThread::NotifyThread(Options options, Ear& ear)
    : options_(std::move(options)), ear_(ear), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

NotifyThread::~NotifyThread() {
    stop();
    close(event_);
}

void NotifyThread::start() {
    if (thread_.joinable()) return;
    std::promise<void> ended;
    ended_ = ended.get_future();
    thread_ = std::jthread([this, ended = std::move(ended)](const std::stop_token& stop) mutable {
        run(stop);
        ended.set_value();
    });
}

void NotifyThread::stop() {
    if (!thread_.joinable()) return;
    request_stop();
    if (ended_.wait_for(kOrderly) != std::future_status::ready) cut();
    thread_.join();
}

void NotifyThread::request_stop() {
    thread_.request_stop();
    poke();
}

void NotifyThread::poke() const {
    eventfd_write(event_, 1);
}

void NotifyThread::cut() {
    std::scoped_lock lock(mutex_);
    if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
}

void NotifyThread::run(const std::stop_token& stop) {
    milliseconds delay = 0ms;
    while (!stop.stop_requested() && !poll_only_) {
        try {
            serve(stop);
            delay = 0ms;
        } catch (const StoreError&) {
            // Who waits polls meanwhile; the lanes report what is wrong with the database.
            delay = std::clamp<milliseconds>(delay * 2, kFirstDelay, kLongestReconnect);
        }
        if (listening_.exchange(false)) delay = kFirstDelay;
        if (!stop.stop_requested() && !poll_only_) wait(-1, delay);
    }
}

void NotifyThread::serve(const std::stop_token& stop) {
    ear_.connecting();
    Session session(options_.dsn, {}, nullptr);
    if (session.pooled()) {
        poll_only_ = true;
        return;
    }
    const Socket reachable(*this, session.connection().sock());
    if (stop.stop_requested()) return;
    try {
        ear_.prepare(session);
        Subscription subscription(
            session.connection(),
            options_.channel,
            [this](std::string_view payload) { ear_.heard(payload); }
        );
        listening_ = true;
        ear_.subscribed();
        auto next_ping = steady_clock::now() + options_.ping;
        while (!stop.stop_requested()) {
            const auto step = ear_.step(session);
            if (steady_clock::now() >= next_ping) {
                session.read(sql::backend_pid, {});
                next_ping = steady_clock::now() + options_.ping;
            }
            const auto ping = std::chrono::ceil<milliseconds>(next_ping - steady_clock::now());
            wait(session.connection().sock(), std::min(ping, step));
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

void NotifyThread::wait(int socket, milliseconds longest) {
    pollfd files[2] = {{event_, POLLIN, 0}, {socket, POLLIN, 0}};
    poll(files, socket < 0 ? 1 : 2, static_cast<int>(std::max<milliseconds>(longest, 0ms).count()));
    eventfd_t pokes = 0;
    eventfd_read(event_, &pokes);  // empty is fine, too
}

}  // namespace outbox::pg
