#include "outbox/pg/announcement.hpp"

#include "outbox/json.hpp"
#include "outbox/pg/batch.hpp"
#include "outbox/pg/pg_error.hpp"
#include "sql/queries.hpp"

namespace outbox::pg {

namespace {

constexpr std::size_t kLongestPayload = 7999;

}  // namespace

std::vector<std::string> done_payloads(
    const std::vector<Transition>& batch, const std::vector<Fate>& fates
) {
    std::vector<std::string> payloads;
    std::string payload;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (!is_final(batch[i].to) || fates[i] != Fate::applied) {
            continue;
        }
        auto id = to_text(Json(batch[i].id.value));
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

void announce(
    Session& session, const std::vector<Transition>& batch, const std::vector<Fate>& fates
) {
    for (const auto& payload : done_payloads(batch, fates)) {
        try {
            session.write(sql::announce_done, {payload});
        } catch (const StoreError&) {
            return;
        }
    }
}

}  // namespace outbox::pg
