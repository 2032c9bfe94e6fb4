#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/metrics.hpp"
#include "tests/support/catch.hpp"

using namespace std::chrono_literals;
using outboxd::Metrics;

namespace {

const std::vector<std::string> kContract = {
    "outboxd_attempts_total counter",
    "outboxd_attempt_duration_seconds histogram",
    "outboxd_pickup_latency_seconds histogram",
    "outboxd_in_flight gauge",
    "outboxd_slots gauge",
    "outboxd_operations gauge",
    "outboxd_oldest_seconds gauge",
    "outboxd_attention gauge",
    "outboxd_enqueued_total counter",
    "outboxd_replayed_total counter",
    "outboxd_unknown_total counter",
    "outboxd_reconciled_total counter",
    "outboxd_late_results_total counter",
    "outboxd_fenced_writes_total counter",
    "outboxd_duplicate_effects_total counter",
    "outboxd_lease_batch_size histogram",
    "outboxd_complete_batch_size histogram",
    "outboxd_database_up gauge",
    "outboxd_database_errors_total counter",
    "outboxd_database_statement_seconds histogram",
    "outboxd_xmin_horizon_age_seconds gauge",
    "outboxd_last_reconcile_timestamp_seconds gauge",
    "outboxd_clock_offset_seconds gauge",
    "outboxd_credential_errors_total counter",
    "outboxd_breaker_open gauge",
    "outboxd_probe_breaker_open gauge",
    "outboxd_lane_paused_seconds gauge",
    "outboxd_config_reloads_total counter",
    "outboxd_config_drift_total counter",
    "outboxd_build_info gauge",
};

Metrics make() {
    return Metrics({"create_ticket", "refund"}, {"orders"}, {"0.1.0", "abc123"});
}

std::multiset<std::string> types(const std::string& text) {
    std::multiset<std::string> found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("# TYPE ")) found.insert(line.substr(7));
    }
    return found;
}

// The value of the one series with that name and these labels (in any order), or "none".
std::string value(const std::string& text, const std::string& name, std::set<std::string> labels) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(name + "{")) continue;
        auto end = line.find('}');
        std::istringstream parts(line.substr(name.size() + 1, end - name.size() - 1));
        std::set<std::string> found;
        for (std::string label; std::getline(parts, label, ',');) found.insert(label);
        if (found == labels) return line.substr(end + 2);
    }
    return "none";
}

void use_everything(Metrics& metrics, std::size_t which = 0) {
    auto& source = metrics.of(which);
    source.leased(7);
    source.attempt_started("create_ticket", 3ms);
    source.attempt_ended("create_ticket", outbox::Succeeded{}, 20ms);
    source.attempt_ended("create_ticket", outbox::Unknown{}, 20ms);
    source.became_unknown("create_ticket", outbox::Cause::reset);
    source.probed("create_ticket", outbox::Found{});
    source.completed(7);
    source.fenced("create_ticket");
    source.late_result("create_ticket");
    source.duplicate_effect("nobody_configured_this");
    source.reconciled_pass();
    source.slots("create_ticket", 3, 16);
    source.statement_done("lease_operations", 1ms);
    source.database_error(outbox::StoreError::Kind::in_doubt);
    source.database_up(true);
    metrics.config_reloaded(true);
    metrics.add_credentials({"desk", "graph"});
    source.credential_error("graph");
    source.breaker_opened("refund");
    source.breaker_opened("create_ticket");
    source.breaker_closed("create_ticket");
}

}  // namespace

TEST_CASE("every family of the contract prints its TYPE from the start, and no other") {
    auto metrics = make();
    std::multiset<std::string> contract(kContract.begin(), kContract.end());
    CHECK(types(metrics.serialize()) == contract);
    use_everything(metrics);
    CHECK(types(metrics.serialize()) == contract);
}

TEST_CASE("series of every configured tool read zero before anything happened") {
    auto text = make().serialize();
    for (const auto* tool : {"tool=\"create_ticket\"", "tool=\"refund\"", "tool=\"other\""}) {
        for (const auto* outcome :
             {"succeeded", "accepted", "rejected", "retry", "unknown", "attention"}) {
            auto label = "outcome=\"" + std::string(outcome) + "\"";
            CHECK(value(text, "outboxd_attempts_total", {tool, label}) == "0");
        }
        CHECK(
            value(text, "outboxd_unknown_total", {tool, "cause=\"rejected_after_unknown\""}) == "0"
        );
        CHECK(value(text, "outboxd_reconciled_total", {tool, "verdict=\"inconclusive\""}) == "0");
        CHECK(value(text, "outboxd_operations", {tool, "status=\"unknown\""}) == "0");
        CHECK(value(text, "outboxd_duplicate_effects_total", {tool}) == "0");
    }
    CHECK(value(text, "outboxd_build_info", {"version=\"0.1.0\"", "commit=\"abc123\""}) == "1");
    CHECK(
        value(text, "outboxd_database_errors_total", {"source=\"orders\"", "kind=\"bug\""}) == "0"
    );
}

TEST_CASE("what the loops report is counted, and unknown tools fold to other") {
    auto metrics = make();
    use_everything(metrics);
    auto text = metrics.serialize();
    const std::string tool = "tool=\"create_ticket\"";
    CHECK(value(text, "outboxd_attempts_total", {tool, "outcome=\"succeeded\""}) == "1");
    CHECK(value(text, "outboxd_attempts_total", {tool, "outcome=\"unknown\""}) == "1");
    CHECK(value(text, "outboxd_attempts_total", {tool, "outcome=\"retry\""}) == "0");
    CHECK(value(text, "outboxd_attempt_duration_seconds_count", {tool}) == "2");
    CHECK(value(text, "outboxd_pickup_latency_seconds_count", {tool}) == "1");
    CHECK(value(text, "outboxd_unknown_total", {tool, "cause=\"reset\""}) == "1");
    CHECK(value(text, "outboxd_reconciled_total", {tool, "verdict=\"found\""}) == "1");
    CHECK(value(text, "outboxd_fenced_writes_total", {tool}) == "1");
    CHECK(value(text, "outboxd_late_results_total", {tool}) == "1");
    CHECK(value(text, "outboxd_in_flight", {tool}) == "3");
    CHECK(value(text, "outboxd_slots", {tool}) == "16");
    CHECK(value(text, "outboxd_duplicate_effects_total", {"tool=\"other\""}) == "1");
    CHECK(text.find("nobody_configured_this") == std::string::npos);
    CHECK(value(text, "outboxd_database_up", {"source=\"orders\""}) == "1");
    CHECK(
        value(
            text, "outboxd_database_statement_seconds_count", {"statement=\"lease_operations\""}
        ) == "1"
    );
    CHECK(value(text, "outboxd_credential_errors_total", {"credential=\"graph\""}) == "1");
    CHECK(value(text, "outboxd_credential_errors_total", {"credential=\"desk\""}) == "0");
    CHECK(value(text, "outboxd_breaker_open", {"tool=\"refund\""}) == "1");
    CHECK(value(text, "outboxd_breaker_open", {tool}) == "0");
    CHECK_THAT(text, ContainsSubstring("outboxd_lease_batch_size_sum 7"));
    metrics.add_tools({"later"});
    CHECK(value(metrics.serialize(), "outboxd_slots", {"tool=\"later\""}) == "0");
}

TEST_CASE("roll-ups add up, per tool of the catalogue") {
    auto metrics = make();
    auto text = metrics.serialize();
    CHECK(value(text, "outboxd_enqueued_total", {"tool=\"refund\""}) == "0");
    CHECK(value(text, "outboxd_replayed_total", {"tool=\"other\""}) == "0");
    const std::vector<outbox::ToolTally> first = {
        {.tool = "refund", .enqueued = 3, .replayed = 1}, {.tool = "elsewhere"}
    };
    metrics.of(0).add_tallies(first);
    const std::vector<outbox::ToolTally> second = {
        {.tool = "refund", .enqueued = 2, .replayed = 0}, {.tool = "other", .replayed = 4}
    };
    metrics.of(0).add_tallies(second);
    text = metrics.serialize();
    CHECK(value(text, "outboxd_enqueued_total", {"tool=\"refund\""}) == "5");
    CHECK(value(text, "outboxd_replayed_total", {"tool=\"refund\""}) == "1");
    CHECK(value(text, "outboxd_replayed_total", {"tool=\"other\""}) == "4");
    CHECK(value(text, "outboxd_enqueued_total", {"tool=\"elsewhere\""}) == "0");
}

TEST_CASE("samples replace each other") {
    auto metrics = make();
    using outbox::Status;
    std::vector<outbox::ToolSample> samples = {
        {.tool = "refund", .status = Status::unknown, .count = 4, .oldest_seconds = 9},
        {.tool = "gone", .status = Status::pending, .count = 2, .oldest_seconds = 5, .served = false
        },
        {.tool = "gone_too",
         .status = Status::pending,
         .count = 1,
         .oldest_seconds = 3,
         .served = false},
        {.tool = "elsewhere", .status = Status::pending, .count = 7, .oldest_seconds = 8},
        {.tool = "refund", .status = Status::succeeded, .count = 99, .oldest_seconds = 1}
    };
    metrics.of(0).set_samples(samples);
    auto text = metrics.serialize();
    CHECK(value(text, "outboxd_operations", {"tool=\"refund\"", "status=\"unknown\""}) == "4");
    CHECK(value(text, "outboxd_oldest_seconds", {"tool=\"refund\"", "status=\"unknown\""}) == "9");
    CHECK(value(text, "outboxd_operations", {"tool=\"other\"", "status=\"pending\""}) == "3");
    CHECK(value(text, "outboxd_oldest_seconds", {"tool=\"other\"", "status=\"pending\""}) == "5");
    // Another daemon runs it: it does not count as one that nobody serves.
    CHECK(value(text, "outboxd_operations", {"tool=\"elsewhere\"", "status=\"pending\""}) == "7");
    metrics.of(0).set_samples({});
    text = metrics.serialize();
    CHECK(value(text, "outboxd_operations", {"tool=\"elsewhere\"", "status=\"pending\""}) == "0");
    CHECK(value(text, "outboxd_operations", {"tool=\"refund\"", "status=\"unknown\""}) == "0");
    CHECK(value(text, "outboxd_oldest_seconds", {"tool=\"other\"", "status=\"pending\""}) == "0");
}

TEST_CASE("what waits for a person is counted by tool and reason, and reads zero before") {
    auto metrics = make();
    const auto waiting = [&](const std::string& tool, const std::string& reason) {
        return value(
            metrics.serialize(),
            "outboxd_attention",
            {"tool=\"" + tool + "\"", "reason=\"" + reason + "\""}
        );
    };
    CHECK(waiting("refund", "manual") == "0");
    metrics.of(0).set_attention(
        {{"refund", "manual", 3},
         {"refund", "conflict", 1},
         {"gone", "hold", 2},
         {"gone_too", "hold", 5},
         {"refund", "a reason of tomorrow", 9}}
    );
    CHECK(waiting("refund", "manual") == "3");
    CHECK(waiting("refund", "conflict") == "1");
    CHECK(waiting("refund", "give_up") == "0");
    CHECK(waiting("other", "hold") == "7");
    metrics.of(0).set_attention({{"refund", "manual", 1}});
    CHECK(waiting("refund", "manual") == "1");
    CHECK(waiting("refund", "conflict") == "0");
    CHECK(waiting("other", "hold") == "0");
}

TEST_CASE("of several sources, what comes of a database says of which; limits are shared") {
    Metrics metrics({"create_ticket"}, {"orders", "support"}, {"0.1.0", "abc123"});
    use_everything(metrics, 1);
    metrics.of(0).attempt_ended("create_ticket", outbox::Succeeded{}, 1ms);
    const std::vector<outbox::ToolSample> samples = {
        {.tool = "create_ticket", .status = outbox::Status::pending, .count = 2}
    };
    const std::vector<outbox::ToolSample> more = {
        {.tool = "create_ticket", .status = outbox::Status::pending, .count = 5}
    };
    metrics.of(0).set_samples(samples);
    metrics.of(1).set_samples(more);
    metrics.of(1).set_samples(more);
    const auto text = metrics.serialize();
    CHECK(types(text) == std::multiset<std::string>(kContract.begin(), kContract.end()));
    const std::string tool = "tool=\"create_ticket\"";
    const std::string orders = "source=\"orders\"";
    const std::string support = "source=\"support\"";
    const std::string succeeded = "outcome=\"succeeded\"";
    const std::string pending = "status=\"pending\"";
    CHECK(value(text, "outboxd_attempts_total", {orders, tool, succeeded}) == "1");
    CHECK(value(text, "outboxd_attempts_total", {support, tool, succeeded}) == "1");
    CHECK(value(text, "outboxd_pickup_latency_seconds_count", {orders, tool}) == "0");
    CHECK(value(text, "outboxd_pickup_latency_seconds_count", {support, tool}) == "1");
    CHECK(value(text, "outboxd_operations", {orders, tool, pending}) == "2");
    CHECK(value(text, "outboxd_operations", {support, tool, pending}) == "5");
    CHECK(value(text, "outboxd_database_up", {orders}) == "0");
    CHECK(value(text, "outboxd_database_up", {support}) == "1");
    CHECK(value(text, "outboxd_lease_batch_size_count", {support}) == "1");
    CHECK(value(text, "outboxd_in_flight", {tool}) == "3");
    CHECK(value(text, "outboxd_breaker_open", {"tool=\"create_ticket\""}) == "0");
    metrics.add_tools({"later"});
    CHECK(
        value(metrics.serialize(), "outboxd_late_results_total", {orders, "tool=\"later\""}) == "0"
    );
}

TEST_CASE("promtool accepts the page") {
    if (std::system("promtool --version >/dev/null 2>&1") != 0) {
        FAIL("promtool is missing: apt-get install prometheus (./dev test does it)");
    }
    auto metrics = make();
    auto file =
        std::filesystem::temp_directory_path() / ("outbox-metrics-" + std::to_string(::getpid()));
    auto check = [&] {
        std::ofstream(file) << metrics.serialize();
        return std::system(("promtool check metrics <" + file.string()).c_str());
    };
    CHECK(check() == 0);
    use_everything(metrics);
    CHECK(check() == 0);
    std::filesystem::remove(file);
}
