#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

struct pg_conn;

namespace tests {

using Value = std::optional<std::string>;  // empty: NULL
using Row = std::vector<Value>;
using Rows = std::vector<Row>;

// What the server refused, in the parts a client sees.
struct SqlError : std::runtime_error {
    SqlError(std::string state, std::string message, std::string detail_text, std::string hint_text)
        : std::runtime_error(
              state + ": " + message + "\nDETAIL: " + detail_text + "\nHINT: " + hint_text
          ),
          sqlstate(std::move(state)),
          detail(std::move(detail_text)),
          hint(std::move(hint_text)) {}
    std::string sqlstate;
    std::string detail;
    std::string hint;
};

// One plain client connection on libpq, as any planner has: no library of ours in between, and
// the state, detail and hint of errors are at hand. send() leaves a statement running, so that a
// test can watch one session wait for another.
class Session {
 public:
    explicit Session(const std::string& dsn);

    // One statement with parameters; throws SqlError.
    Rows query(const std::string& sql, const Row& parameters = {});
    // The only value of the only row; throws std::logic_error when the shape is another.
    Value value(const std::string& sql, const Row& parameters = {});
    // As value, and NULL is an error too.
    std::string text(const std::string& sql, const Row& parameters = {});
    // Several statements at once, without parameters.
    void run(const std::string& script);

    // COPY … FROM STDIN with these lines.
    void copy_in(const std::string& sql, const std::string& lines);

    void send(const std::string& sql, const Row& parameters = {});
    // True while the sent statement has not ended within the given time.
    bool still_running(std::chrono::milliseconds time);
    Rows receive();  // waits for the end of what was sent

    // Warnings of the server since the last call.
    std::vector<std::string> warnings();

    // NOTIFY payloads that arrived; looks at the socket first.
    std::vector<std::string> notifications();
    [[nodiscard]] int backend() const;

 private:
    struct Close {
        void operator()(pg_conn* connection) const;
    };
    std::unique_ptr<std::vector<std::string>> warnings_;  // its address is known to libpq
    std::unique_ptr<pg_conn, Close> connection_;
};

}  // namespace tests
