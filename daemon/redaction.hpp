#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "outbox/json.hpp"

namespace outboxd {

// What people may not see of one tool's operations (redact:). The arguments it names become ***,
// and where the other side repeats them (results, errors, events) they become *** as well. Of a
// tool that this configuration does not have nobody knows what to hide, so all of it is hidden.
class Redaction {
 public:
    Redaction(const config::Config& config, const std::string& tool);

    // The tool is not in this configuration.
    [[nodiscard]] bool hides_all() const { return hides_all_; }
    [[nodiscard]] bool hides_something() const { return hides_all_ || !pointers_.empty(); }

    // Arguments, without what is hidden; their values are kept in mind for `elsewhere`.
    [[nodiscard]] outbox::Json arguments(outbox::Json value);
    // Anything else: whole strings and parts of strings that hold a hidden value.
    [[nodiscard]] outbox::Json elsewhere(outbox::Json value) const;

 private:
    void remember(const outbox::Json& value);
    [[nodiscard]] std::string masked(std::string text) const;

    bool hides_all_ = false;
    std::vector<std::string> pointers_;
    std::vector<std::string> hidden_;  // texts, the longest first
};

inline constexpr std::string_view kHidden = "***";

}  // namespace outboxd
