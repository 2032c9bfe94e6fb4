#include "outbox/pg/timeline.hpp"

#include <chrono>
#include <utility>

#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

using namespace std::chrono_literals;

constexpr int kPage = 2000;
// Heartbeats share the lane: others must not take a long change for a dead worker.
constexpr auto kTurn = 1000ms;

}  // namespace

std::optional<pqxx::result> TimelineGuard::write(
    Session& session, const std::string& text, const Parameters& parameters
) {
    if (!session.checked() && !settle(session)) {
        return std::nullopt;
    }
    if (!session.pooled()) {
        return session.write(text, parameters);
    }
    auto rows = session.write_if(sql::check_timeline, text, parameters);
    if (!rows) {
        session.set_checked(false);
    }
    return rows;
}

std::optional<TimelineChange> TimelineGuard::take_change() {
    return std::exchange(change_, std::nullopt);
}

bool TimelineGuard::settle(Session& session) {
    auto known = session.read(sql::check_timeline, {});
    bool settled = !known.empty() && known[0][0].as<bool>();
    const auto end = std::chrono::steady_clock::now() + kTurn;
    while (!settled && std::chrono::steady_clock::now() < end) {
        try {
            auto rows = session.write(sql::settle_timeline, {std::to_string(kPage)});
            if (rows.empty()) {
                throw StoreError(StoreError::Kind::unavailable, "this server is a standby");
            }
            settled = rows[0]["settled"].as<bool>();
            for (const auto& row : rows) {
                if (row["was"].is_null()) {
                    continue;
                }
                if (!change_) {
                    change_.emplace();
                }
                change_->was = row["was"].c_str();
                change_->now = row["timeline"].c_str();
                if (!row["tool"].is_null()) {
                    change_->unknown[row["tool"].c_str()] += row["moved"].as<int>();
                }
            }
        } catch (const StoreError& error) {
            // A planner holds a row, or another daemon is at it for long: nothing is lost.
            if (error.kind() != StoreError::Kind::conflict) {
                throw;
            }
            return false;
        }
    }
    session.set_checked(settled);
    return settled;
}

}  // namespace outbox::pg
