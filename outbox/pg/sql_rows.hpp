#pragma once

#include <cstddef>

#include "outbox/pg/compat.hpp"
#include "outbox/sql_database.hpp"

namespace outbox::pg {

// Rows as a JSON array of objects. Numbers, booleans and json keep their type, NULL is null;
// everything else is its text, arrays too. Of columns with one name the last one counts.
[[nodiscard]] SqlRows rows_of(const pqxx::result& result, std::size_t max_bytes);

}  // namespace outbox::pg
