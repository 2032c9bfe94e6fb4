#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "outbox/log.hpp"
#include "outbox/observer.hpp"

namespace test {

// Counts what the loops report.
class CountingObserver : public outbox::Observer {
 public:
    std::map<std::string, int> counts;
    std::vector<std::size_t> batches;  // of completions
    std::vector<std::size_t> leases;

    void leased(std::size_t batch) override { leases.push_back(batch); }
    void attempt_started(std::string_view, std::chrono::nanoseconds) override {
        ++counts["started"];
    }
    void attempt_ended(std::string_view, const outbox::Outcome& outcome, std::chrono::nanoseconds)
        override {
        ++counts["ended:" + std::string(outbox::outcome_name(outcome))];
    }
    void became_unknown(std::string_view, outbox::Cause cause) override {
        ++counts["unknown:" + std::string(outbox::to_string(cause))];
    }
    void probed(std::string_view, const outbox::Verdict& verdict) override {
        ++counts["probed:" + std::string(outbox::verdict_name(verdict))];
    }
    void completed(std::size_t batch) override { batches.push_back(batch); }
    void fenced(std::string_view) override { ++counts["fenced"]; }
    void late_result(std::string_view) override { ++counts["late_result"]; }
    void duplicate_effect(std::string_view) override { ++counts["duplicate_effect"]; }
    void reconciled_pass() override { ++counts["reconciled_pass"]; }
    void slots(std::string_view tool, int in_flight, int) override {
        auto& most = counts["most_in_flight:" + std::string(tool)];
        most = std::max(most, in_flight);
    }
    void statement_done(std::string_view, std::chrono::nanoseconds) override {}
    void database_error(outbox::StoreError::Kind) override { ++counts["database_error"]; }
    void database_up(bool up) override { ++counts[up ? "database_up" : "database_down"]; }
};

// Keeps the lines: an important one is a mark of what was covered.
class RecordingLog : public outbox::Log {
 public:
    std::vector<std::string> lines;

    void write(
        outbox::LogLevel, std::string_view message, std::initializer_list<outbox::LogField> fields
    ) override {
        std::string line(message);
        for (const auto& field : fields) {
            line += " " + std::string(field.key) + "=" + field.value;
        }
        lines.push_back(std::move(line));
    }
    [[nodiscard]] bool says(std::string_view text) const {
        return std::any_of(lines.begin(), lines.end(), [&](const auto& line) {
            return line.find(text) != std::string::npos;
        });
    }
};

}  // namespace test
