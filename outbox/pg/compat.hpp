#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The one place that knows which libpqxx it is: 6.4 (Debian 12) or 7.x (Debian 13).
#if defined(PQXX_VERSION_MAJOR) && PQXX_VERSION_MAJOR >= 7
#define OUTBOX_PQXX_7 1
#else
#define OUTBOX_PQXX_7 0
#endif

namespace outbox::pg {

// Parameters in text form; an empty one is NULL.
using Parameters = std::vector<std::optional<std::string>>;

#if OUTBOX_PQXX_7
inline pqxx::params to_params(const Parameters& parameters) {
    pqxx::params all;
    all.reserve(parameters.size());
    for (const auto& value : parameters) {
        if (value) {
            all.append(*value);
        } else {
            all.append();
        }
    }
    return all;
}

inline pqxx::result execute(
    pqxx::transaction_base& transaction, const std::string& sql, const Parameters& parameters
) {
#if PQXX_VERSION_MAJOR > 7 || PQXX_VERSION_MINOR >= 9
    return transaction.exec(pqxx::zview{sql}, to_params(parameters));
#else
    return transaction.exec_params(pqxx::zview{sql}, to_params(parameters));
#endif
}

inline pqxx::result execute_prepared(
    pqxx::transaction_base& transaction, const std::string& name, const Parameters& parameters
) {
#if PQXX_VERSION_MAJOR > 7 || PQXX_VERSION_MINOR >= 9
    return transaction.exec(pqxx::prepped{name}, to_params(parameters));
#else
    return transaction.exec_prepared(pqxx::zview{name}, to_params(parameters));
#endif
}
#else
inline std::vector<const char*> to_pointers(const Parameters& parameters) {
    std::vector<const char*> all;  // a null pointer is NULL
    all.reserve(parameters.size());
    for (const auto& value : parameters) {
        all.push_back(value ? value->c_str() : nullptr);
    }
    return all;
}

inline pqxx::result execute(
    pqxx::transaction_base& transaction, const std::string& sql, const Parameters& parameters
) {
    auto all = to_pointers(parameters);
    return transaction.exec_params(sql, pqxx::prepare::make_dynamic_params(all));
}

inline pqxx::result execute_prepared(
    pqxx::transaction_base& transaction, const std::string& name, const Parameters& parameters
) {
    auto all = to_pointers(parameters);
    return transaction.exec_prepared(name, pqxx::prepare::make_dynamic_params(all));
}
#endif

// A session that never comes back by itself: 6.4 would reconnect behind our back and go on in a
// new session, without the locks and settings of the old one.
class Connection : public pqxx::connection {
 public:
    explicit Connection(const std::string& dsn) : pqxx::connection(dsn) {
#if !OUTBOX_PQXX_7
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
        inhibit_reactivation(true);
#pragma GCC diagnostic pop
#endif
    }
};

// SQLSTATE of an exception. 6.4's serialization failures and deadlocks are no sql_error; a broken
// connection has none in either version: it gets 08000.
inline std::string sqlstate_of(const std::exception& error) {
    if (const auto* sql = dynamic_cast<const pqxx::sql_error*>(&error);
        sql != nullptr && !sql->sqlstate().empty()) {
        return sql->sqlstate();
    }
    if (dynamic_cast<const pqxx::deadlock_detected*>(&error) != nullptr) {
        return "40P01";
    }
    if (dynamic_cast<const pqxx::serialization_failure*>(&error) != nullptr) {
        return "40001";
    }
    if (dynamic_cast<const pqxx::statement_completion_unknown*>(&error) != nullptr) {
        return "40003";
    }
    if (dynamic_cast<const pqxx::transaction_rollback*>(&error) != nullptr) {
        return "40000";
    }
    if (dynamic_cast<const pqxx::broken_connection*>(&error) != nullptr) {
        return "08000";
    }
    return {};
}

// One channel's notifications, handed to a function while the owner calls get_notifs().
using NotifyHandler = std::function<void(std::string_view payload)>;
#if OUTBOX_PQXX_7 && (PQXX_VERSION_MAJOR > 7 || PQXX_VERSION_MINOR >= 10)
class Subscription {
 public:
    Subscription(pqxx::connection& connection, const std::string& channel, NotifyHandler handler) {
        connection.listen(channel, [handler = std::move(handler)](pqxx::notification note) {
            handler(std::string_view{note.payload});
        });
    }
};
#else
class Subscription : public pqxx::notification_receiver {
 public:
    Subscription(pqxx::connection& connection, const std::string& channel, NotifyHandler handler)
        : pqxx::notification_receiver(connection, channel), handler_(std::move(handler)) {}
    void operator()(const std::string& payload, int) override { handler_(payload); }

 private:
    NotifyHandler handler_;
};
#endif

}  // namespace outbox::pg
