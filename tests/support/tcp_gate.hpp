#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace tests {

// A TCP port on loopback that hands bytes through to a server and can harm them on the way: before
// Postgres, before the stub. Runs on a thread of its own; every method may be called from any.
class TcpGate {
 public:
    // "127.0.0.1:5432", "[::1]:5432", or the path of a unix socket ("/run/x/.s.PGSQL.5432").
    explicit TcpGate(const std::string& target);
    ~TcpGate();
    TcpGate(const TcpGate&) = delete;
    TcpGate& operator=(const TcpGate&) = delete;

    [[nodiscard]] int port() const;
    [[nodiscard]] int connections() const;  // accepted so far

    // New connections are reset at once.
    void refuse(bool on);
    // Every chunk waits so long before it is handed on.
    void delay(std::chrono::milliseconds duration);
    // What is read is thrown away, in both directions: a cable that was pulled.
    void swallow(bool on);
    // New connections are reset once so many bytes went through.
    void cut_after_client_bytes(std::size_t count);
    void cut_after_server_bytes(std::size_t count);
    void never_cut();
    // Resets every present connection.
    void drop_all();

 private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tests
