#include "outbox/pg/sql_rows.hpp"

#include <utility>

namespace outbox::pg {

namespace {

// Types of pg_catalog, whose numbers never change (pg_type.dat).
constexpr unsigned kBool = 16;
constexpr unsigned kInt8 = 20;
constexpr unsigned kInt2 = 21;
constexpr unsigned kInt4 = 23;
constexpr unsigned kOid = 26;
constexpr unsigned kJson = 114;
constexpr unsigned kFloat4 = 700;
constexpr unsigned kFloat8 = 701;
constexpr unsigned kNumeric = 1700;
constexpr unsigned kJsonb = 3802;

Json value_of(const pqxx::field& field, unsigned type) {
    if (field.is_null()) return {};
    std::string text(field.c_str(), field.size());
    switch (type) {
        case kBool:
            return Json(text == "t");
        case kInt2:
        case kInt4:
        case kInt8:
        case kOid:
        case kFloat4:
        case kFloat8:
        case kNumeric:
        case kJson:
        case kJsonb: {
            // NaN and Infinity are no JSON: they stay text.
            auto parsed = parse_foreign_json(text);
            return parsed.value ? std::move(*parsed.value) : Json(std::move(text));
        }
        default:
            return Json(std::move(text));
    }
}

}  // namespace

SqlRows rows_of(const pqxx::result& result, std::size_t max_bytes) {
    SqlRows out;
    const bool returns = result.columns() > 0;
    out.count = static_cast<int>(returns ? result.size() : result.affected_rows());
    Json::Array rows;
    std::size_t bytes = 0;
    for (const auto& row : result) {
        Json::Object object;
        Json item(std::move(object));
        for (const auto& field : row) {
            bytes += field.size() + 16;
            if (bytes > max_bytes) {
                out.truncated = true;
                return out;
            }
            item.set(field.name(), value_of(field, field.type()));
        }
        rows.push_back(std::move(item));
    }
    out.rows = Json(std::move(rows));
    return out;
}

}  // namespace outbox::pg
