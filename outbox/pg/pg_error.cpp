#include "outbox/pg/pg_error.hpp"

#include <array>
#include <new>
#include <utility>

#include "outbox/pg/compat.hpp"

namespace outbox::pg {

namespace {

using Kind = StoreError::Kind;

struct Rule {
    std::string_view prefix;  // a SQLSTATE, or the class it belongs to
    Kind kind;
};

// First match wins: single states before their classes.
constexpr std::array kRules = {
    Rule{"40003", Kind::in_doubt},     // statement_completion_unknown
    Rule{"40", Kind::conflict},        // serialization failure, deadlock
    Rule{"55P03", Kind::conflict},     // lock_timeout, NOWAIT
    Rule{"57014", Kind::unavailable},  // statement_timeout: rolled back, the database is slow
    Rule{"57P", Kind::unavailable},    // shutting down, starting up, idle time-outs
    Rule{"25006", Kind::unavailable},  // read-only: a standby, or a failover under way
    Rule{"25P03", Kind::unavailable},  // idle_in_transaction_session_timeout
    Rule{"08", Kind::unavailable},     // connection exceptions
    Rule{"53", Kind::unavailable},     // disk full, out of memory, too many connections
    Rule{"58", Kind::unavailable},     // I/O errors of the server's system
    Rule{"28", Kind::unavailable},     // may not log in: a person repairs it, we ask again
    Rule{"3D", Kind::unavailable},     // no such database (yet)
    Rule{"22", Kind::data},            // what jsonb, text and timestamptz refuse
    Rule{"23", Kind::data},            // CHECKs and unique keys
    Rule{"54", Kind::data},            // larger than a row, an index entry, a stack may be
    Rule{"OB", Kind::data},            // our own functions: bad input of a caller
};

std::string trimmed(std::string_view text) {
    const auto* blank = " \t\r\n";
    auto first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) {
        return {};
    }
    return std::string(text.substr(first, text.find_last_not_of(blank) - first + 1));
}

// libpq's verbose text has one part per line; libpqxx keeps nothing but that text.
struct Parts {
    std::string message;
    std::string detail;
    std::string hint;
};

Parts parts_of(std::string_view text) {
    Parts parts;
    std::string context;
    std::string position;
    std::string* now = &parts.message;
    while (!text.empty()) {
        auto end = text.find('\n');
        auto line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        for (auto [label, part] :
             {std::pair{std::string_view{"ERROR:"}, &parts.message},
              std::pair{std::string_view{"FATAL:"}, &parts.message},
              std::pair{std::string_view{"DETAIL:"}, &parts.detail},
              std::pair{std::string_view{"HINT:"}, &parts.hint},
              std::pair{std::string_view{"CONTEXT:"}, &context},
              std::pair{std::string_view{"LINE "}, &position}}) {
            if (line.starts_with(label)) {
                now = part;
                line.remove_prefix(label.size());
                break;
            }
        }
        if (!now->empty()) {
            *now += '\n';
        }
        *now += trimmed(line);
    }
    return {trimmed(parts.message), trimmed(parts.detail), trimmed(parts.hint)};
}

std::string sentence(const std::string& sqlstate, const Parts& parts) {
    auto text = sqlstate.empty() ? parts.message : sqlstate + ": " + parts.message;
    if (!parts.detail.empty()) {
        text += " (" + parts.detail + ")";
    }
    return text;
}

}  // namespace

SqlError::SqlError(
    Kind kind, std::string sqlstate, std::string message, std::string detail, std::string hint
)
    : StoreError(kind, sentence(sqlstate, {message, detail, hint})),
      sqlstate_(std::move(sqlstate)),
      message_(std::move(message)),
      detail_(std::move(detail)),
      hint_(std::move(hint)) {}

StoreError::Kind kind_of(std::string_view sqlstate) {
    for (const auto& rule : kRules) {
        if (sqlstate.starts_with(rule.prefix)) {
            return rule.kind;
        }
    }
    return Kind::bug;
}

bool is_coming_up(std::string_view message) {
    return message.find("the database system is starting up") != std::string_view::npos ||
           message.find("the database system is not yet accepting connections") !=
               std::string_view::npos;
}

void rethrow_as_store_error(const std::exception& error, During during) {
    if (dynamic_cast<const StoreError*>(&error) != nullptr) {
        throw;  // ours already; as it is, for it may be a SqlError
    }
    auto text = trimmed(error.what());
    if (dynamic_cast<const pqxx::broken_connection*>(&error) != nullptr ||
        dynamic_cast<const pqxx::in_doubt_error*>(&error) != nullptr) {
        // A connection that breaks under a write says nothing about the write.
        throw StoreError(during == During::write ? Kind::in_doubt : Kind::unavailable, text);
    }
    auto state = sqlstate_of(error);
    // libpqxx 6.4 drops the SQLSTATE of this one alone.
    if (state.empty() && dynamic_cast<const pqxx::insufficient_privilege*>(&error) != nullptr) {
        state = "42501";
    }
    if (!state.empty()) {
        auto parts = parts_of(text);
        auto kind = kind_of(state);
        // The server ended the session in the middle of the statement; it may have been committed.
        if (during == During::write && (state.starts_with("08") || state.starts_with("57P"))) {
            kind = Kind::in_doubt;
        }
        throw SqlError(kind, state, parts.message, parts.detail, parts.hint);
    }
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
        throw StoreError(Kind::unavailable, text);
    }
    throw StoreError(Kind::bug, text);
}

}  // namespace outbox::pg
