// What is looked at and counted every few seconds, for the metrics.
#include <utility>

#include "outbox/pg/lane.hpp"
#include "outbox/pg/pg_store.hpp"
#include "outbox/pg/rows.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

asio::awaitable<std::vector<ToolSample>> PgStore::sample() {
    auto work = [](Session& session) {
        return read_samples(session.read(sql::sample_operations, {}));
    };
    co_return co_await maintain_->run(std::move(work));
}

asio::awaitable<RollUp> PgStore::roll_up() {
    auto work = [](Session& session) { return read_roll_up(session.write(sql::roll_up, {})); };
    co_return co_await maintain_->run(std::move(work));
}

asio::awaitable<std::vector<AttentionCount>> PgStore::attention() {
    auto work = [](Session& session) {
        std::vector<AttentionCount> all;
        for (const auto& row : session.read(sql::count_attention, {})) {
            all.push_back(
                {row["tool"].as<std::string>(),
                 row["reason"].as<std::string>(),
                 row["count"].as<std::int64_t>()}
            );
        }
        return all;
    };
    co_return co_await maintain_->run(std::move(work));
}

asio::awaitable<Horizon> PgStore::horizon() {
    auto work = [](Session& session) {
        const auto row = session.read(sql::sample_horizon, {})[0];
        return Horizon{row["next_id"].as<std::int64_t>(), row["ids_back"].as<std::int64_t>()};
    };
    co_return co_await maintain_->run(std::move(work));
}

}  // namespace outbox::pg
