#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/cli.hpp"
#include "daemon/embedded_postgres.hpp"
#include "daemon/process.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/json.hpp"
#include "tools/http_client.hpp"

namespace outboxd {

// Ctrl-C: everything is taken down by the destructors on the way out.
class Interrupted : public std::runtime_error {
 public:
    Interrupted() : std::runtime_error("interrupted") {}
};

// A temporary directory that goes with its owner.
class TemporaryFolder {
 public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
    std::filesystem::path path_;
};

// The world of the demo, all of it real processes: a private Postgres, a ticket service that knows
// nothing of idempotency, daemons, and a planner that talks SQL through psql. Used on one thread.
class DemoWorld {
 public:
    explicit DemoWorld(Console console);

    void start_desk();
    void stop_desk();
    // How the service misbehaves at the next POST of that title (ticket_desk.hpp).
    void set_desk(std::string_view behaviour, const std::string& title);
    void release_desk();  // ends hold_after
    // Asks the service itself how many tickets of that title there are.
    [[nodiscard]] int tickets(const std::string& title);
    // What a worker without an outbox does: one POST; false when no answer came.
    bool post_ticket(const std::string& title);

    // Starts `outboxd run` and waits until it is ready.
    void start_daemon();
    void kill_daemon();  // SIGKILL to the latest one
    void stop_daemons();

    // Runs the planner's SQL and returns the last line it printed.
    std::string planner(const std::string& sql);
    // outbox.get of an operation.
    outbox::Json get(const std::string& operation_id);
    // Waits until the operation is in that status.
    outbox::Json wait_for(const std::string& operation_id, std::string_view status);
    [[nodiscard]] bool happened(const std::string& operation_id, std::string_view event);

    void wait_until(const std::function<bool()>& done, std::string_view what);
    void say(std::string_view line);

 private:
    std::optional<tools::HttpResponse> http(
        int port,
        std::string method,
        std::string target,
        std::string body,
        std::chrono::milliseconds limit
    );

    Console console_;
    std::string self_;  // path of this very binary
    TemporaryFolder folder_;
    boost::asio::io_context io_;
    outbox::Failpoints no_failpoints_;
    tools::HttpClient client_;
    EmbeddedPostgres postgres_;
    int desk_port_ = 0;
    std::unique_ptr<Process> desk_;
    std::vector<std::unique_ptr<Process>> daemons_;
    int started_ = 0;
};

}  // namespace outboxd
