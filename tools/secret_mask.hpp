#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "outbox/outcome.hpp"

namespace tools {

// Used on the io thread (copies anywhere). Providers like to repeat what they were sent ("invalid
// token abc…"). What an attempt or a probe reports is stored, logged and read by models, so every
// known secret in it becomes ***.
class SecretMask {
 public:
    // The secrets of all credentials and dsns, in the forms in which they are sent. Those of fewer
    // than six bytes are left out: they would mask ordinary words.
    explicit SecretMask(
        const std::map<std::string, config::Credential>& credentials,
        const std::vector<config::Tool>& tools = {}
    );

    // The password of a proxy, a token that was fetched: masked from now on. Of those fetched while
    // the daemon runs the last few are kept.
    void add(const std::string& secret);
    void learn(const std::string& token);

    void apply(outbox::Outcome& outcome) const;
    void apply(outbox::Verdict& verdict) const;

 private:
    void add_dsn(const std::string& dsn);
    void apply(std::string& text) const;
    void apply(outbox::Error& error) const;
    void apply(outbox::Json& value) const;

    std::vector<std::string> secrets_;  // the longest first: one may hold another
    std::deque<std::string> learned_;   // the newest last
};

}  // namespace tools
