#include "outbox/pg/session.hpp"

#include "outbox/pg/dsn.hpp"
#include "outbox/pg/pg_error.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

constexpr std::string_view kUnnamed = "other";

// How long a plan is good for. One that was made while the queue was empty for certain (vacuumed,
// then analysed) reads all of it, and the server keeps it until the next analyze, minutes later.
constexpr std::chrono::seconds kPlanAge{10};
const std::string kDiscardPlans = "DISCARD PLANS";  // no query: cannot be prepared like the others

Connection connect(const std::string& dsn) {
    try {
        return Connection(with_defaults(dsn));
    } catch (const std::exception& error) {
        rethrow_as_store_error(error, During::connect);
    }
}

std::string_view name_of(const std::string& text) {
    for (const auto& query : sql::queries()) {
        if (query.text == &text) {
            return query.name;
        }
    }
    return kUnnamed;
}

// Tells the time however the statement ends.
class Stopwatch {
 public:
    Stopwatch(Observer* observer, const std::string& text) : observer_(observer), text_(text) {}
    ~Stopwatch() {
        if (observer_ != nullptr) {
            observer_->statement_done(name_of(text_), std::chrono::steady_clock::now() - start_);
        }
    }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

 private:
    Observer* observer_;
    const std::string& text_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// A time-out as the server's settings spell it.
std::string spelled(std::chrono::milliseconds time) {
    return std::to_string(time.count()) + "ms";
}

}  // namespace

Session::Session(const std::string& dsn, SessionSettings settings, Observer* observer)
    : connection_(connect(dsn)), settings_(settings), observer_(observer) {
    try {
        introduce();
    } catch (const std::exception& error) {
        rethrow_as_store_error(error, During::connect);
    }
}

void Session::introduce() {
    pqxx::nontransaction transaction(connection_);
    auto pid = execute(transaction, sql::backend_pid, {});
    pooled_ = pid[0][0].as<int>() != connection_.backendpid();
    if (!pooled_) {
        execute(
            transaction,
            sql::session_settings,
            {spelled(settings_.statement_timeout), spelled(settings_.lock_timeout), "f"}
        );
        if (settings_.hot) execute(transaction, sql::hot_settings, {});
    }
}

pqxx::result Session::read(const std::string& text, const Parameters& parameters) {
    return run(text, parameters, false);
}

pqxx::result Session::write(const std::string& text, const Parameters& parameters) {
    return run(text, parameters, true);
}

std::optional<pqxx::result> Session::write_if(
    const std::string& condition, const std::string& text, const Parameters& parameters
) {
    Stopwatch stopwatch(observer_, text);
    try {
        return run_pooled(&condition, text, parameters);
    } catch (const std::exception& error) {
        rethrow(error, true);
    }
}

pqxx::result Session::run(const std::string& text, const Parameters& parameters, bool writes) {
    Stopwatch stopwatch(observer_, text);
    try {
        if (pooled_) {
            return *run_pooled(nullptr, text, parameters);
        }
        pqxx::nontransaction transaction(connection_);
        return settings_.hot ? run_hot(transaction, text, parameters)
                             : execute(transaction, text, parameters);
    } catch (const std::exception& error) {
        rethrow(error, writes);
    }
}

// The server may have lost the statement, or a migration changed what it answers. Neither was
// executed; a new session prepares it anew.
pqxx::result Session::run_hot(
    pqxx::transaction_base& transaction, const std::string& text, const Parameters& parameters
) {
    auto name = std::string(name_of(text));
    if (name == kUnnamed) return execute(transaction, text, parameters);
    const auto now = std::chrono::steady_clock::now();
    if (now - planned_ >= kPlanAge) {
        execute(transaction, kDiscardPlans, {});
        planned_ = now;
    }
    if (prepared_.insert(name).second) {
        connection_.prepare(name, text);
    }
    try {
        return execute_prepared(transaction, name, parameters);
    } catch (const std::exception& error) {
        auto state = sqlstate_of(error);
        if (state != "26000" && state != "0A000") throw;
        broken_ = true;
        throw StoreError(StoreError::Kind::unavailable, error.what());
    }
}

void Session::rethrow(const std::exception& error, bool writes) {
    auto during = writes ? During::write : During::read;
    if (!connection_.is_open() && sqlstate_of(error).empty()) {
        pqxx::broken_connection broken(error.what());
        rethrow_as_store_error(broken, during);
    }
    rethrow_as_store_error(error, during);
}

// What SET says stays with a server connection that the pooler hands to somebody else next; so the
// time-outs travel in the statement's own transaction.
std::optional<pqxx::result> Session::run_pooled(
    const std::string* condition, const std::string& text, const Parameters& parameters
) {
    pqxx::work transaction(connection_);
    execute(
        transaction,
        sql::session_settings,
        {spelled(settings_.statement_timeout), spelled(settings_.lock_timeout), "t"}
    );
    if (condition != nullptr) {
        auto holds = execute(transaction, *condition, {});
        if (holds.empty() || !holds[0][0].as<bool>()) {
            return std::nullopt;
        }
    }
    auto rows = execute(transaction, text, parameters);
    transaction.commit();
    return rows;
}

}  // namespace outbox::pg
