#pragma once

#include <functional>
#include <optional>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// The one place that knows which libpqxx it is: 6.4 (Debian 12) or 7.x (Debian 13).
#if defined(PQXX_VERSION_MAJOR) && PQXX_VERSION_MAJOR >= 7
#define OUTBOXD_PQXX_7 1
#else
#define OUTBOXD_PQXX_7 0
#endif

namespace outboxd {

#if OUTBOXD_PQXX_7
using Connection = pqxx::connection;
#else
using Connection = pqxx::connection_base;
#endif

namespace detail {

// Parameters in text form; an empty one is NULL.
using Parameters = std::vector<std::optional<std::string>>;

inline void refuse_nul(const Parameters& parameters) {
    for (const auto& value : parameters) {
        // libpqxx 6 would cut it there without a word.
        if (value && value->find('\0') != std::string::npos) {
            throw std::invalid_argument(
                "a parameter contains a NUL byte, which Postgres cannot store"
            );
        }
    }
}

#if OUTBOXD_PQXX_7
inline pqxx::result execute(
    pqxx::transaction_base& transaction, const std::string& sql, const Parameters& parameters
) {
    refuse_nul(parameters);
    pqxx::params all;
    all.reserve(parameters.size());
    for (const auto& value : parameters) {
        if (value) {
            all.append(*value);
        } else {
            all.append();
        }
    }
#if PQXX_VERSION_MAJOR > 7 || PQXX_VERSION_MINOR >= 9
    return transaction.exec(pqxx::zview{sql}, all);
#else
    return transaction.exec_params(pqxx::zview{sql}, all);
#endif
}
#else
inline pqxx::result execute(
    pqxx::transaction_base& transaction, const std::string& sql, const Parameters& parameters
) {
    refuse_nul(parameters);
    if (dynamic_cast<pqxx::subtransaction*>(&transaction) != nullptr) {
        // Statements with parameters do not make 6.4 send the SAVEPOINT; a plain one does.
        transaction.exec("SELECT");
    }
    std::vector<const char*> all;  // a null pointer is NULL
    all.reserve(parameters.size());
    for (const auto& value : parameters) {
        all.push_back(value ? value->c_str() : nullptr);
    }
    return transaction.exec_params(sql, pqxx::prepare::make_dynamic_params(all));
}
#endif

// LISTEN outbox_done for as long as it lives. What is heard is a hint, so nobody reads it.
#if OUTBOXD_PQXX_7 && (PQXX_VERSION_MAJOR > 7 || PQXX_VERSION_MINOR >= 10)
class Subscription {
 public:
    explicit Subscription(Connection& connection) : connection_(connection) {
        connection_.listen("outbox_done", [](pqxx::notification) {});
    }
    ~Subscription() {
        try {
            connection_.listen("outbox_done");
        } catch (const std::exception&) {  // a lost connection listens no more
        }
    }
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

 private:
    Connection& connection_;
};
#else
class Subscription : public pqxx::notification_receiver {
 public:
    explicit Subscription(Connection& connection)
        : pqxx::notification_receiver(connection, "outbox_done") {}
    void operator()(const std::string&, int) override {}
};
#endif

}  // namespace detail
}  // namespace outboxd
