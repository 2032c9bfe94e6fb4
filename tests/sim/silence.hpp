#pragma once

#include "outbox/log.hpp"
#include "outbox/observer.hpp"

namespace sim {

// Neither logs nor counts; a loop that ends on a fault shows in Engine::failed().
class Silence : public outbox::Observer, public outbox::Log {
 public:
    void leased(std::size_t) override {}
    void attempt_started(std::string_view, std::chrono::nanoseconds) override {}
    void attempt_ended(std::string_view, const outbox::Outcome&, std::chrono::nanoseconds)
        override {}
    void became_unknown(std::string_view, outbox::Cause) override {}
    void probed(std::string_view, const outbox::Verdict&) override {}
    void completed(std::size_t) override {}
    void fenced(std::string_view) override {}
    void late_result(std::string_view) override {}
    void duplicate_effect(std::string_view) override {}
    void reconciled_pass() override {}
    void slots(std::string_view, int, int) override {}
    void statement_done(std::string_view, std::chrono::nanoseconds) override {}
    void database_error(outbox::StoreError::Kind) override {}
    void database_up(bool) override {}
    void write(outbox::LogLevel, std::string_view, std::initializer_list<outbox::LogField>)
        override {}
};

}  // namespace sim
