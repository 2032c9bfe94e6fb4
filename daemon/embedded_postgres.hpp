#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "daemon/process.hpp"

namespace outboxd {

// What cannot be: no server installed, a directory somebody else uses, …; with the way out.
class EmbeddedPostgresError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

// A private Postgres cluster for development: one directory, a unix socket only its owner can
// reach, nothing on TCP. The server is a child of this process and ends with it, whatever ends it:
// by stop(), or by the kernel's death signal when this process is killed. Used on the main thread.
class EmbeddedPostgres {
 public:
    // Makes the cluster when the directory holds none, starts the server and waits until it takes
    // connections.
    explicit EmbeddedPostgres(const std::string& data_dir);
    ~EmbeddedPostgres();
    EmbeddedPostgres(const EmbeddedPostgres&) = delete;
    EmbeddedPostgres& operator=(const EmbeddedPostgres&) = delete;

    [[nodiscard]] const std::string& dsn() const { return dsn_; }
    [[nodiscard]] const std::string& log_file() const { return log_file_; }
    [[nodiscard]] bool running();

    // Starts it once more after it ended by itself; does not wait until it takes connections.
    void launch();
    // Fast shutdown: running transactions are rolled back.
    void stop();

 private:
    void initialise();
    void wait_for_predecessor();
    void wait_ready();

    std::filesystem::path data_dir_;
    std::filesystem::path bin_dir_;
    std::filesystem::path socket_dir_;
    std::string log_file_;
    std::string dsn_;
    std::optional<User> user_;  // when we are root: Postgres refuses to be
    std::unique_ptr<Process> server_;
};

// Where initdb and postgres are: pg_config --bindir, else the newest of /usr/lib/postgresql.
[[nodiscard]] std::optional<std::filesystem::path> find_postgres_bin();

// How to reach the server of that directory, whether it runs or not.
[[nodiscard]] std::string embedded_dsn(const std::string& data_dir);

// A value of a libpq keyword string, quoted when it must be.
[[nodiscard]] std::string dsn_value(const std::string& value);

}  // namespace outboxd
