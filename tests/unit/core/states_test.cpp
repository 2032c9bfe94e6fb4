#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "outbox/operation.hpp"
#include "outbox/transition.hpp"
#include "tests/support/catch.hpp"

// State is written in three places: the CHECKs of the tables, the enums, and the diagram for
// people. They are kept equal here.
using namespace outbox;

namespace {

using Words = std::set<std::string>;
using Arrows = std::set<std::pair<std::string, std::string>>;

std::string read(const std::string& path) {
    std::ifstream file(OUTBOX_SOURCE_DIR "/" + path);
    std::stringstream text;
    text << file.rdbuf();
    REQUIRE_FALSE(text.str().empty());
    return text.str();
}

// The words in quotes behind "column IN (" of the named CHECK.
Words checked(const std::string& sql, const std::string& constraint) {
    const auto at = sql.find("CONSTRAINT " + constraint + " CHECK");
    REQUIRE(at != std::string::npos);
    const auto open = sql.find("IN (", at);
    const auto list = sql.substr(open, sql.find("))", open) - open);
    Words words;
    const std::regex quoted("'([a-z_]+)'");
    for (std::sregex_iterator it(list.begin(), list.end(), quoted), end; it != end; ++it) {
        words.insert((*it)[1]);
    }
    return words;
}

template <class Enums>
Words names(const Enums& values) {
    Words words;
    for (const auto value : values) words.insert(std::string(to_string(value)));
    REQUIRE(words.size() == values.size());
    return words;
}

// "a --> b" lines of the mermaid block.
Arrows diagram() {
    const auto text = read("outbox/README.md");
    const auto begin = text.find("stateDiagram-v2");
    REQUIRE(begin != std::string::npos);
    const auto block = text.substr(begin, text.find("```", begin) - begin);
    Arrows arrows;
    const std::regex arrow(R"((\[\*\]|\w+)\s*-->\s*(\[\*\]|\w+))");
    for (std::sregex_iterator it(block.begin(), block.end(), arrow), end; it != end; ++it) {
        arrows.emplace((*it)[1], (*it)[2]);
    }
    return arrows;
}

}  // namespace

TEST_CASE("statuses: CHECKs = enum = diagram") {
    const auto sql = read("sql/migrations/0001_tables.sql");
    auto all = checked(sql, "queue_status");
    const auto final = checked(sql, "outcome_outcome");
    for (const auto& status : final) {
        CHECK_FALSE(all.contains(status));  // open and final ones live in different tables
        all.insert(status);
    }
    CHECK(all == names(kAllStatuses));

    Words drawn;
    for (const auto& [from, to] : diagram()) {
        if (from != "[*]") drawn.insert(from);
        if (to != "[*]") drawn.insert(to);
    }
    CHECK(drawn == all);
    CHECK(final == Words{"succeeded", "failed", "cancelled"});
}

TEST_CASE("attention reasons: CHECKs = enum") {
    const auto sql = read("sql/migrations/0001_tables.sql");
    CHECK(checked(sql, "queue_attention") == names(kAllAttentionReasons));
    CHECK(checked(sql, "outcome_attention") == names(kAllAttentionReasons));
}

TEST_CASE("event kinds: CHECK = enum") {
    const auto sql = read("sql/migrations/0001_tables.sql");
    CHECK(checked(sql, "event_kind") == names(kAllEventKinds));
}

TEST_CASE("the diagram draws the rows of the contract's table") {
    const Arrows expected = {
        {"[*]", "pending"},          {"[*]", "scheduled"},        {"scheduled", "pending"},
        {"pending", "attempting"},   {"pending", "failed"},       {"scheduled", "failed"},
        {"attempting", "pending"},   {"attempting", "succeeded"}, {"attempting", "failed"},
        {"attempting", "scheduled"}, {"attempting", "unknown"},   {"pending", "unknown"},
        {"scheduled", "unknown"},    {"unknown", "unknown"},      {"unknown", "succeeded"},
        {"unknown", "scheduled"},    {"unknown", "failed"},       {"pending", "succeeded"},
        {"scheduled", "succeeded"},  {"failed", "succeeded"},     {"cancelled", "succeeded"},
        {"pending", "cancelled"},    {"scheduled", "cancelled"},  {"failed", "pending"},
        {"succeeded", "[*]"},
    };
    // Beside them, for compensations only: cancelled because there was nothing to undo and asked
    // for again, or armed again while the original is in doubt.
    const Arrows compensations = {
        {"cancelled", "pending"}, {"cancelled", "scheduled"}, {"failed", "scheduled"}
    };
    auto drawn = diagram();
    for (const auto& arrow : compensations) CHECK(drawn.erase(arrow) == 1);
    CHECK(drawn == expected);
    for (const auto& [from, to] : diagram()) {
        INFO(from << " --> " << to);
        CHECK((from != "succeeded" || to == "[*]"));  // nothing leads out of a success
    }
}
