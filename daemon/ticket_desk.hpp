#pragma once

#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/http_server.hpp"
#include "outbox/json.hpp"

namespace outboxd {

// How the desk misbehaves, for demo and tests (POST /mode).
struct DeskRule {
    enum class Behaviour {
        drop_before,   // close the connection, nothing was done
        drop_after,    // do it, then close the connection without an answer
        error_before,  // 500, nothing was done
        error_after,   // do it, then 500
        delay_before,  // wait delay_ms, then do it
        delay_after,   // do it, wait delay_ms, then answer
        hold_before,   // wait for POST /release, then do it
        hold_after,    // do it, answer after POST /release
        refuse,        // answer `status` (422 unless given), nothing was done
    };
    Behaviour behaviour = Behaviour::drop_after;
    bool on_list = false;                     // for GET /tickets instead of POST
    std::optional<std::string> external_ref;  // for requests with this value only
    std::optional<std::string> title;
    std::int64_t next = -1;  // how many requests it applies to; −1 all
    std::int64_t delay_ms = 1'000;
    int status = 422;
    std::optional<std::int64_t> retry_after;  // seconds, with refuse
};

// The small ticket service of `outboxd demo` and the tests: it creates a real ticket for every
// POST and counts them, so a duplicate effect shows. Everything is in memory.
//   POST /tickets {title, external_ref, …} → 201 {id, external_ref, …, links: {self}}
//   GET  /tickets?external_ref=&title=&limit=&cursor= → {tickets, has_more, next_cursor}
//   GET  /tickets/ID · POST /tickets/ID/close · GET /count?external_ref=&title= → {count, …}
//   POST /mode RULE · DELETE /mode · POST /release · POST /settings {idempotency: bool}
// Idempotency-Key is ignored unless /settings turned it on.
class TicketDesk {
 public:
    explicit TicketDesk(asio::any_io_executor executor);

    [[nodiscard]] std::optional<std::string> listen(int port);
    [[nodiscard]] int port() const { return server_.port(); }
    asio::awaitable<void> run() { return server_.run(); }
    void stop() { server_.stop(); }

 private:
    struct Ticket {
        std::int64_t id = 0;
        std::string title;
        std::string external_ref;
        outbox::Json body;  // as it was posted
        bool closed = false;
    };
    using Behaviour = DeskRule::Behaviour;

    asio::awaitable<ServerResponse> handle(ServerRequest request);
    asio::awaitable<ServerResponse> create(ServerRequest request);
    asio::awaitable<ServerResponse> list(ServerRequest request);
    asio::awaitable<ServerResponse> misbehave(std::optional<DeskRule> rule, bool after);
    asio::awaitable<void> wait_for_release();
    std::optional<DeskRule> take_rule(
        bool on_list, const std::string& external_ref, const std::string& title
    );
    Ticket& open_ticket(outbox::Json body, const std::optional<std::string>& key);

    [[nodiscard]] ServerResponse page(const ServerRequest& request) const;
    [[nodiscard]] ServerResponse count(const ServerRequest& request) const;
    ServerResponse one(const ServerRequest& request);
    ServerResponse set_mode(const ServerRequest& request);
    ServerResponse set_settings(const ServerRequest& request);
    [[nodiscard]] outbox::Json describe(const Ticket& ticket) const;

    std::vector<Ticket> tickets_;
    std::map<std::string, std::size_t> by_key_;  // Idempotency-Key → ticket, when turned on
    std::vector<DeskRule> rules_;
    bool idempotency_ = false;
    std::int64_t creates_ = 0;  // POST /tickets received, whatever became of them
    std::int64_t lists_ = 0;
    int held_ = 0;
    asio::steady_timer released_;
    HttpServer server_;
};

// `outboxd ticket-desk --port N`: serves on loopback until SIGTERM or SIGINT. Prints one line,
// {"port": N}, when it listens. The exit code: 0, or 1 when it cannot listen.
int run_ticket_desk(int port);

}  // namespace outboxd
