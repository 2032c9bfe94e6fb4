#include "outbox/pg/dsn.hpp"

#include <array>
#include <utility>

namespace outbox::pg {

namespace {

// Times of libpq: connect_timeout in seconds, tcp_user_timeout in milliseconds. A peer that
// vanished is noticed within 15 to 25 s, well before a lease of the usual margin is judged.
constexpr std::array kDefaults = {
    std::pair{"fallback_application_name", "outboxd"},
    std::pair{"connect_timeout", "5"},
    std::pair{"keepalives_idle", "10"},
    std::pair{"keepalives_interval", "5"},
    std::pair{"keepalives_count", "3"},
    std::pair{"tcp_user_timeout", "15000"},
};

std::string joined(char separator) {
    std::string text;
    for (const auto& [key, value] : kDefaults) {
        text += key;
        text += '=';
        text += value;
        text += separator;
    }
    return text;
}

}  // namespace

std::string with_defaults(std::string_view dsn) {
    if (!dsn.starts_with("postgres://") && !dsn.starts_with("postgresql://")) {
        // Of a keyword that occurs twice libpq takes the later one.
        return joined(' ') + std::string(dsn);
    }
    auto query = dsn.find('?');
    if (query == std::string_view::npos) {
        auto text = std::string(dsn) + '?' + joined('&');
        text.pop_back();
        return text;
    }
    auto rest = dsn.substr(query + 1);
    auto text = std::string(dsn.substr(0, query + 1)) + joined('&') + std::string(rest);
    if (rest.empty()) {
        text.pop_back();
    }
    return text;
}

}  // namespace outbox::pg
