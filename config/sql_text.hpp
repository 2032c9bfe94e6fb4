#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace config {

// One statement with named parameters, as the file has it.
struct SqlText {
    struct Problem {
        std::size_t offset = 0;  // into the text
        std::string what;
        std::string hint;
    };
    std::string numbered;            // :name became $1, $2, …; without a semicolon at its end
    std::vector<std::string> names;  // of $1, $2, …
    std::string keyword;             // the first word, in upper case
    std::vector<Problem> problems;
};

// :name outside of quotes, dollar quotes, comments and ::casts. Postgres' own rules for what a
// quote is (standard_conforming_strings on, its default).
[[nodiscard]] SqlText parse_sql(std::string_view text);

}  // namespace config
