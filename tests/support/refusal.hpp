#pragma once

#include "tests/support/session.hpp"

namespace tests {

// What the server refused; a statement that succeeds is a failure of the test.
inline SqlError refusal(Session& session, const std::string& sql, const Row& parameters = {}) {
    try {
        session.query(sql, parameters);
    } catch (const SqlError& error) {
        return error;
    }
    throw std::logic_error("not refused: " + sql);
}

}  // namespace tests
