#pragma once

#include <optional>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <utility>

namespace outboxd {

// A request that the outbox refused; what() is the server's whole message. Like every SQL error it
// aborts the transaction: end it, or put the call into a pqxx::subtransaction. A duplicate is not
// an error. Serialization failures and deadlocks stay libpqxx's own: see retry_transaction.
class Refused : public std::runtime_error {
 public:
    Refused(std::string sqlstate, const std::string& what)
        : std::runtime_error(what),
          sqlstate_(std::move(sqlstate)),
          detail_(part(what, "DETAIL:  ")),
          hint_(part(what, "HINT:  ")) {}

    [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }
    // What is wrong, and the way out. libpqxx hands over one text only: they are empty where
    // lc_messages is not English or the connection's verbosity is terse.
    [[nodiscard]] const std::optional<std::string>& detail() const { return detail_; }
    [[nodiscard]] const std::optional<std::string>& hint() const { return hint_; }

 private:
    static std::optional<std::string> part(const std::string& text, const std::string& label) {
        const auto start = text.find("\n" + label);
        if (start == std::string::npos) {
            return std::nullopt;
        }
        const auto from = start + 1 + label.size();
        return text.substr(from, text.find('\n', from) - from);
    }

    std::string sqlstate_;
    std::optional<std::string> detail_;
    std::optional<std::string> hint_;
};

// OB400: neither operation_id nor run_id, a limit, a missing member.
class BadRequest : public Refused {
    using Refused::Refused;
};
// OB404: no daemon has published such a tool, the tool has no such compensation, or nothing is
// recorded under the id to compensate.
class UnknownTool : public Refused {
    using Refused::Refused;
};
// OB410: a compensation needs the original's result, and that was pruned.
class ResultExpired : public Refused {
    using Refused::Refused;
};
// OB413: the arguments exceed their limit.
class TooLarge : public Refused {
    using Refused::Refused;
};
// OB422: this explicit id is recorded with another tool or other arguments.
class IdConflict : public Refused {
    using Refused::Refused;
};

// The call needs a connection without an open transaction.
class InTransaction : public std::logic_error {
 public:
    explicit InTransaction(const std::string& what)
        : std::logic_error(
              what +
              " needs a connection without an open transaction: what this one has enqueued "
              "exists for the daemon when it is committed. Commit first, or pass another connection"
          ) {}
};

namespace detail {

[[noreturn]] inline void refuse(const pqxx::sql_error& error) {
    const std::string state = error.sqlstate();
    const std::string what = error.what();
    if (state == "OB400") {
        throw BadRequest(state, what);
    }
    if (state == "OB404") {
        throw UnknownTool(state, what);
    }
    if (state == "OB410") {
        throw ResultExpired(state, what);
    }
    if (state == "OB413") {
        throw TooLarge(state, what);
    }
    if (state == "OB422") {
        throw IdConflict(state, what);
    }
    throw Refused(state, what);
}

}  // namespace detail
}  // namespace outboxd
