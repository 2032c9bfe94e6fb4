#include "daemon/source.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <ctime>
#include <exception>
#include <utility>

#include "daemon/command.hpp"
#include "daemon/text.hpp"
#include "outbox/elsewhere.hpp"
#include "outbox/pg/client.hpp"
#include "outbox/pg/migrator.hpp"

namespace outboxd {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr auto kCheckAgain = 500ms;  // doubled up to
constexpr auto kCheckAtMost = 10s;
// What a database that does not answer gets beyond drain_timeout at a stop.
constexpr auto kSilence = 10s;

// "the leaser has failed since 2026-01-31T12:00:00Z (14 s): …"
std::string trouble_text(const std::pair<std::string, outbox::Pulse::Trouble>& trouble) {
    const auto& [loop, details] = trouble;
    const auto lasting = std::chrono::duration_cast<std::chrono::seconds>(details.lasting);
    const auto since =
        std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() - lasting);
    return fmt::format(
        "the {} has failed since {:%Y-%m-%dT%H:%M:%SZ} ({} s): {}",
        loop,
        fmt::gmtime(since),
        lasting.count(),
        printable(details.error)
    );
}

}  // namespace

Source::Source(
    SourceOptions options,
    asio::any_io_executor executor,
    const config::Config& config,
    StderrLog& log,
    outbox::Failpoints& failpoints,
    SourceMetrics& metrics,
    OnFault on_fault
)
    : options_(std::move(options)),
      executor_(std::move(executor)),
      config_(config),
      log_(log, options_.alone ? "" : options_.name),
      failpoints_(failpoints),
      metrics_(metrics),
      on_fault_(std::move(on_fault)),
      databases_(options_.dsn, &failpoints_),
      working_(executor_, [this](const auto& name, const auto& what) { escaped(name, what); }),
      upkeep_(executor_, [this](const auto& name, const auto& what) { escaped(name, what); }),
      open_bell_(executor_),
      watch_bell_(executor_),
      sample_bell_(executor_),
      retention_bell_(executor_) {}

void Source::check(const SourceOptions& options) {
    if (options.postgres != nullptr) outbox::pg::migrate(options.dsn);  // ours alone
    const auto state = outbox::pg::schema_state(options.dsn);
    if (state.fit != outbox::pg::SchemaFit::fits) {
        throw CommandError(kSchemaMismatch, state.message);
    }
    outbox::pg::Client client(options.dsn);
    const std::string recorded = client.claim_namespace(options.name);
    if (recorded != options.name) {
        throw CommandError(
            kConfiguration,
            fmt::format(
                "{} is {} here, but this outbox was started with {}; every provider key depends "
                "on it",
                options.alone ? "database.namespace" : "the source's name",
                options.name,
                recorded
            )
        );
    }
}

void Source::serve(
    std::unique_ptr<outbox::Toolset> tools, std::shared_ptr<outbox::SharedLimits> limits
) {
    Next next{std::move(tools), std::move(limits)};
    if (!opened_) {
        next_ = std::move(next);
        return;
    }
    for (auto& generation : generations_) generation->supersede();
    begin(std::move(next));
}

void Source::open() {
    opened_ = true;
    trouble_.reset();
    refusal_.reset();
    if (next_) begin(std::move(*next_));
    next_.reset();
}

void Source::begin(Next next) {
    Surroundings surroundings{
        .executor = executor_,
        .observer = metrics_,
        .log = log_,
        .failpoints = failpoints_,
        .dsn = options_.dsn,
        .key_namespace = options_.name,
        .limits = std::move(next.limits),
        .siblings = {},
    };
    for (const auto& one : generations_) surroundings.siblings.push_back(one->worker());
    auto& generation = *generations_.emplace_back(
        std::make_unique<Generation>(config_, std::move(next.tools), surroundings)
    );
    working_.spawn("generation", run_generation(generation));
}

asio::awaitable<void> Source::run_generation(Generation& generation) {
    auto running = generation.run();
    co_await std::move(running);
    if (generation.engine().failed()) {
        ++stop_requests_;  // what runs beside it looks at nothing any more
        on_fault_();
    }
    if (generation.engine().idle()) {
        generations_.remove_if([&](const auto& one) { return one.get() == &generation; });
    }
}

void Source::escaped(const std::string& name, const std::string& what) {
    log_.error("a task ended on a fault, stopping", {{"task", name}, {"error", what}});
    on_fault_();
}

void Source::keep_opening() {
    upkeep_.spawn("opening", try_opening());
}

asio::awaitable<void> Source::try_opening() {
    std::chrono::milliseconds pause = kCheckAgain;
    while (!ended_ && stop_requests_ == 0) {
        auto checking = check_once();
        co_await std::move(checking);
        if (ended_ || stop_requests_ > 0) co_return;
        if (!trouble_) {
            open();
            co_return;
        }
        log_.write(
            refused() ? outbox::LogLevel::error : outbox::LogLevel::warn,
            "this source is not served yet, trying again",
            {{"error", *trouble_}}
        );
        co_await open_bell_.wait(pause);
        pause = std::min<std::chrono::milliseconds>(pause * 2, kCheckAtMost);
    }
}

// On a thread of its own: connecting to a database that is away takes its time.
asio::awaitable<void> Source::check_once() {
    auto look = [](SourceOptions options) -> asio::awaitable<void> {
        check(options);
        co_return;
    };
    auto looking = look(options_);
    checking_ = true;
    std::exception_ptr failure;
    try {
        auto checked = outbox::elsewhere(checks_.get_executor(), std::move(looking));
        co_await std::move(checked);
    } catch (...) {
        failure = std::current_exception();
    }
    checking_ = false;
    trouble_.reset();
    refusal_.reset();
    if (!failure) co_return;
    try {
        std::rethrow_exception(failure);
    } catch (const CommandError& error) {
        refusal_ = error.code();
        trouble_ = error.what();
    } catch (const std::exception& error) {
        trouble_ = error.what();
    }
}

void Source::stop() {
    ++stop_requests_;
    open_bell_.ring();
    for (auto& generation : generations_) generation->stop();
}

asio::awaitable<bool> Source::join() {
    const auto begun = outbox::BootClock::now();
    while (working_.size() > 0) {
        const bool ended = co_await working_.join(200ms);
        if (ended) break;
        const auto patience =
            stop_requests_ > 1 ? kSilence : config_.worker.drain_timeout + kSilence;
        if (!answers() && outbox::BootClock::now() - begun > patience) {
            log_.error("the database does not answer, not waiting for it any longer");
            co_return false;
        }
    }
    co_return true;
}

void Source::end_upkeep() {
    ended_ = true;
    for (auto* bell : {&open_bell_, &watch_bell_, &sample_bell_, &retention_bell_}) bell->ring();
}

bool Source::started() const {
    return !generations_.empty() && generations_.back()->engine().health().started;
}

bool Source::answers() const {
    return !generations_.empty() && generations_.back()->engine().health().database;
}

std::optional<std::string> Source::trouble() const {
    if (trouble_) return printable(*trouble_);
    if (generations_.empty()) return "starting";
    const auto health = generations_.back()->engine().health();
    if (!health.loops) return "a loop ended on a fault";
    if (!health.troubles.empty()) return trouble_text(health.troubles.front());
    if (!health.started) return "starting";
    if (!health.database) return "the database has not answered the heartbeat lately";
    return std::nullopt;
}

}  // namespace outboxd
