#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "outbox/store.hpp"

namespace outbox::pg {

// What the server refused, in the parts a person reads.
class SqlError : public StoreError {
 public:
    SqlError(
        Kind kind, std::string sqlstate, std::string message, std::string detail, std::string hint
    );

    [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }
    [[nodiscard]] const std::string& message() const { return message_; }
    [[nodiscard]] const std::string& detail() const { return detail_; }
    [[nodiscard]] const std::string& hint() const { return hint_; }

 private:
    std::string sqlstate_;
    std::string message_;
    std::string detail_;
    std::string hint_;
};

// What was going on when the exception came; decides what a broken connection means.
enum class During {
    connect,  // nothing was asked yet
    read,     // nothing can have changed
    write,    // an autocommit statement or a commit: it may have been done
};

// The one table of what a SQLSTATE means to the caller. Of errors after which the server has
// certainly rolled back; a broken connection is not among them.
[[nodiscard]] StoreError::Kind kind_of(std::string_view sqlstate);

// A server that answers "not yet": it starts, or recovers after a crash, and will be there. Of a
// failed connect libpq keeps the words only; a server that speaks another language is not known.
[[nodiscard]] bool is_coming_up(std::string_view message);

// Rethrows whatever libpqxx threw as StoreError (SqlError when the server spoke). To be called
// with the exception in flight.
[[noreturn]] void rethrow_as_store_error(const std::exception& error, During during);

}  // namespace outbox::pg
