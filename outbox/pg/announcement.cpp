#include "outbox/pg/announcement.hpp"

#include "outbox/json.hpp"
#include "outbox/pg/pg_error.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

constexpr std::size_t kLongestPayload = 7999;

}  // namespace

std::vector<std::string> done_payloads(const std::vector<std::string>& ids) {
    std::vector<std::string> payloads;
    std::string payload;
    for (const auto& one : ids) {
        auto id = to_text(Json(one));
        if (!payload.empty() && payload.size() + id.size() + 2 > kLongestPayload) {
            payloads.push_back(payload + "]");
            payload.clear();
        }
        payload += (payload.empty() ? "[" : ",") + id;
    }
    if (!payload.empty()) {
        payloads.push_back(payload + "]");
    }
    return payloads;
}

void announce(Session& session, const std::vector<std::string>& ids) {
    for (const auto& payload : done_payloads(ids)) {
        try {
            session.write(sql::announce_done, {payload});
        } catch (const StoreError&) {
            return;
        }
    }
}

}  // namespace outbox::pg
