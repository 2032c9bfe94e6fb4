#include "outbox/pg/sql_database.hpp"

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "outbox/pg/announcement.hpp"
#include "outbox/pg/lane.hpp"
#include "outbox/pg/sql_run.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;
using When = SqlFailure::When;

constexpr SessionSettings kSettings{.statement_timeout = 30s, .lock_timeout = 2s};

// After the deadline, how long a lost commit is asked about before the completer has to decide.
constexpr auto kDoubt = 10s;

class PgDatabase final : public SqlDatabase {
 public:
    PgDatabase(std::string dsn, Failpoints* failpoints)
        : failpoints_(failpoints), lane_(std::move(dsn), kSettings, nullptr) {}

    asio::awaitable<SqlEnd> perform(SqlCall call, JudgeRows judge, std::optional<OwnAttempt> own)
        override {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        auto work = [this, &call, &judge, &own](Session& session) {
            return run_effect(session, call, judge, own ? &*own : nullptr, failpoints_);
        };
        auto running = on_lane(std::move(work));
        auto end = co_await std::move(running);
        if (!own) co_return end;
        if (end.failure && end.failure->when == When::in_doubt) {
            auto settling = settle(*own, call.deadline, end);
            co_await std::move(settling);
        }
        if (end.failure) end.written.reset();
        if (end.written) {
            auto telling = tell(*end.written);
            co_await std::move(telling);
        }
        co_return end;
    }

    asio::awaitable<SqlEnd> look_up(SqlCall call) override {
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        auto work = [this, &call](Session& session) {
            return run_look_up(session, call, failpoints_);
        };
        auto running = on_lane(std::move(work));
        co_return co_await std::move(running);
    }

 private:
    template <class Work>
    asio::awaitable<SqlEnd> on_lane(Work work) {
        SqlEnd end;
        try {
            auto running = lane_.run(std::move(work));
            end = co_await std::move(running);
        } catch (const StoreError& error) {
            end = SqlEnd{};
            end.failure = not_begun(error.what());  // only connecting throws
        }
        co_return end;
    }

    // Asks until it is known. When the database stays away for too long, the failure stays
    // in_doubt: the completer's write under the same epoch will tell.
    asio::awaitable<void> settle(const OwnAttempt& own, Deadline deadline, SqlEnd& end) {
        asio::steady_timer pause(co_await asio::this_coro::executor);
        const auto give_up = deadline.at + kDoubt;
        for (;;) {
            std::optional<bool> committed;
            try {
                auto work = [&own, &end](Session& session) {
                    return was_committed(session, own, *end.written);
                };
                auto asking = lane_.run(std::move(work));
                committed = co_await std::move(asking);
            } catch (const StoreError&) {
                committed.reset();
            }
            if (committed) {
                if (*committed) {
                    end.failure.reset();
                } else {
                    end.failure = {When::rolled_back, "08000", "the commit did not arrive"};
                }
                co_return;
            }
            if (BootClock::now() >= give_up) co_return;
            pause.expires_after(100ms);
            co_await pause.async_wait(asio::use_awaitable);
        }
    }

    // outbox_done, like any completion; a hint.
    asio::awaitable<void> tell(const Transition& written) {
        try {
            auto work = [&written](Session& session) {
                announce(session, {written.id.value});
                return true;
            };
            auto telling = lane_.run(std::move(work));
            co_await std::move(telling);
        } catch (const StoreError&) {
            co_return;
        }
    }

    Failpoints* failpoints_;
    Lane lane_;
};

}  // namespace

std::unique_ptr<SqlDatabase> PgDatabases::open(const std::optional<std::string>& dsn) {
    return std::make_unique<PgDatabase>(dsn.value_or(own_dsn_), failpoints_);
}

}  // namespace outbox::pg
