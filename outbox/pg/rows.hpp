#pragma once

#include <optional>
#include <string>
#include <vector>

#include "outbox/operation.hpp"
#include "outbox/pg/compat.hpp"
#include "outbox/policy.hpp"
#include "outbox/store.hpp"

// Rows become structs at once, one function per row type; no pqxx::result leaves outbox/pg.
namespace outbox::pg {

// By priority, then in the order in which they were filed.
[[nodiscard]] std::vector<LeasedAttempt> read_leased(const pqxx::result& rows);
[[nodiscard]] std::vector<ClaimedProbe> read_claimed(const pqxx::result& rows);
[[nodiscard]] ResentAttempt read_resent(const pqxx::row& row);
[[nodiscard]] std::vector<ToolDrift> read_drifts(const pqxx::result& rows);
[[nodiscard]] std::vector<ToolSample> read_samples(const pqxx::result& rows);
[[nodiscard]] RollUp read_roll_up(const pqxx::result& rows);

// Key settings as outbox.request keeps them, both ways.
[[nodiscard]] Json to_json(const KeySettings& settings);
[[nodiscard]] KeySettings read_key_settings(const std::string& text);

// The first column of every row as text.
[[nodiscard]] std::vector<std::string> read_texts(const pqxx::result& rows);

}  // namespace outbox::pg
