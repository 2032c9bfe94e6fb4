#include "daemon/app.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

#include "config/load.hpp"
#include "daemon/command.hpp"
#include "daemon/exit_code.hpp"
#include "daemon/page.hpp"
#include "daemon/pause.hpp"
#include "daemon/sd_notify.hpp"
#include "daemon/text.hpp"
#include "daemon/version.hpp"
#include "outbox/pg/pg_error.hpp"
#include "outbox/shared_limit.hpp"
#include "tools/toolset.hpp"

namespace outboxd {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

// At the start; later the daemon waits for ever.
constexpr auto kDatabasePatience = 10s;
constexpr auto kRecoveryPatience = 120s;  // with a server that says that it is on its way
constexpr const char* kListenHint =
    "choose another admin.listen in the configuration; outboxd dev takes one with -c FILE";

std::vector<std::string> names_of(const config::Config& config) {
    std::vector<std::string> names;
    for (const auto& tool : config.tools) names.push_back(tool.name);
    return names;
}

// What it serves; a configuration without sources has one, named by its namespace.
std::vector<SourceOptions> databases_of(const AppOptions& options) {
    const auto& database = options.config.database;
    if (database.sources.empty()) {
        return {{.name = database.key_namespace, .dsn = options.dsn, .postgres = options.postgres}};
    }
    std::vector<SourceOptions> all;
    for (const auto& source : database.sources) {
        all.push_back({.name = source.name, .dsn = source.dsn.value, .alone = false});
    }
    return all;
}

std::vector<std::string> sources_of(const AppOptions& options) {
    std::vector<std::string> names;
    for (auto& one : databases_of(options)) names.push_back(std::move(one.name));
    return names;
}

std::vector<std::string> credentials_of(const config::Config& config) {
    std::vector<std::string> names;
    for (const auto& [name, credential] : config.credentials) names.push_back(name);
    return names;
}

std::vector<SourceApis::Database> api_databases(const AppOptions& options) {
    std::vector<SourceApis::Database> all;
    for (auto& one : databases_of(options)) {
        all.push_back({std::move(one.name), std::move(one.dsn)});
    }
    return all;
}

AdminOptions admin_options(const config::Config& config) {
    const auto& admin = config.admin;
    return {
        .host = admin.host,
        .port = admin.port,
        .hosts = admin.hosts,
        .token_file = admin.token_file,
        .agent_token_file = config.mcp.token_file
    };
}

}  // namespace

App::App(AppOptions options, StderrLog& log)
    : options_(std::move(options)),
      log_(log),
      signals_(io_, SIGINT, SIGTERM, SIGHUP),
      metrics_(
          names_of(options_.config), sources_of(options_), {.version = kVersion, .commit = kCommit}
      ),
      gates_(&metrics_.of(0)),
      faces_(io_.get_executor(), api_databases(options_), log_, options_.config),
      admin_(
          io_.get_executor(),
          admin_options(options_.config),
          metrics_,
          [this] { return readiness(); }
      ),
      api_(io_.get_executor(), api_databases(options_), options_.config),
      ending_(
          io_.get_executor(), [this](const auto& name, const auto& what) { escaped(name, what); }
      ),
      supporting_(
          io_.get_executor(), [this](const auto& name, const auto& what) { escaped(name, what); }
      ),
      stop_(io_.get_executor()),
      watchdog_bell_(io_.get_executor()),
      postgres_bell_(io_.get_executor()) {
    metrics_.add_credentials(credentials_of(options_.config));
    api_.serve_on(admin_);
    serve_page_on(admin_);
    faces_.serve_on(admin_);
    arm_failpoints();
    add_sources();
}

void App::add_sources() {
    for (auto& one : databases_of(options_)) {
        sources_.push_back(std::make_unique<Source>(
            std::move(one),
            io_.get_executor(),
            options_.config,
            log_,
            failpoints_,
            metrics_.of(sources_.size()),
            [this] { request_stop(kNo); }
        ));
    }
}

void App::arm_failpoints() {
    const char* wanted = std::getenv("OUTBOXD_FAILPOINTS");
    if (wanted == nullptr || *wanted == '\0') return;
    if (!options_.config.allow_failpoints) {
        log_.warn("OUTBOXD_FAILPOINTS is ignored: testing.allow_failpoints is not set");
        return;
    }
    const std::string problem = failpoints_.arm(wanted);
    if (!problem.empty()) throw CommandError(kConfiguration, "OUTBOXD_FAILPOINTS: " + problem);
    log_.warn("failpoints are armed", {{"failpoints", wanted}});
}

int App::run() {
    auto toolsets = compile(options_.config, options_.diagnostics);
    if (toolsets.empty()) throw ConfigurationError(options_.diagnostics);
    supporting_.spawn("signals", handle_signals());
    serve_all(std::move(toolsets));
    open_sources();
    if (stop_requests_ > 0) return kDone;
    supporting_.spawn("main", serve());
    io_.run();
    if (unserved_) throw *unserved_;
    // A tool that does not let go of its call, or a database that does not answer, must not keep
    // the process; what was under way is unknown.
    const auto idle = [](const auto& source) { return source->idle(); };
    if (!std::all_of(sources_.begin(), sources_.end(), idle)) {
        log_.error("something under way did not end when it was cut, exiting without it");
        if (options_.postgres != nullptr) options_.postgres->stop();
        std::_Exit(kNo);
    }
    const auto checking = [](const auto& source) { return source->checking(); };
    if (std::any_of(sources_.begin(), sources_.end(), checking)) std::_Exit(exit_code_);
    return exit_code_;
}

// One alone is waited for, as nothing can be done without it. Several are opened each in its time.
void App::open_sources() {
    if (sources_.size() > 1) {
        for (auto& source : sources_) source->keep_opening();
        return;
    }
    wait_for_database(*sources_.front());
    if (stop_requests_ == 0) sources_.front()->open();
}

// Blocks: nothing else runs yet but the signals.
void App::wait_for_database(Source& source) {
    const auto start = std::chrono::steady_clock::now();
    auto pause = 100ms;
    for (;;) {
        io_.poll();
        if (stop_requests_ > 0) return;
        try {
            return source.check();
        } catch (const outbox::StoreError& error) {
            using Kind = outbox::StoreError::Kind;
            const bool temporary = error.kind() != Kind::bug && error.kind() != Kind::data;
            if (!temporary) throw;
            const bool coming = outbox::pg::is_coming_up(error.what());
            const auto end = start + (coming ? kRecoveryPatience : kDatabasePatience);
            if (std::chrono::steady_clock::now() + pause > end) {
                throw CommandError(kDatabaseUnreachable, error.what());
            }
            log_.warn("the database cannot be reached, trying again", {{"error", error.what()}});
        }
        pause_for(pause);
        pause = std::min<std::chrono::milliseconds>(pause * 2, 2s);
    }
}

App::Toolsets App::compile(const config::Config& config, config::Diagnostics& diagnostics) {
    std::vector<outbox::SqlDatabases*> databases;
    for (auto& source : sources_) databases.push_back(&source->databases());
    auto toolsets = tools::build_toolsets(
        config,
        diagnostics,
        {.executor = io_.get_executor(),
         .failpoints = failpoints_,
         .log = log_,
         .observer = &metrics_.of(0),
         .databases = nullptr,
         .gates = &gates_},
        databases
    );
    diagnostics.sort();
    for (const auto& diagnostic : diagnostics.all()) {
        if (diagnostic.severity != config::Severity::warning) continue;
        log_.warn("in the configuration", {{"diagnostic", config::to_text(diagnostic)}});
    }
    return toolsets;
}

// By the configuration that is options_.config now.
void App::serve_all(Toolsets toolsets) {
    const auto limits = std::make_shared<outbox::SharedLimits>(
        *toolsets.front(), options_.config.worker.concurrency, static_cast<int>(sources_.size())
    );
    for (std::size_t i = 0; i < sources_.size(); ++i) {
        sources_[i]->serve(std::move(toolsets[i]), limits);
    }
}

// The daemon's life on one screen.
asio::awaitable<void> App::serve() {
    if (auto problem = admin_.listen()) {
        log_.error("the admin server cannot listen", {{"error", *problem}, {"hint", kListenHint}});
        request_stop(kNo);
    } else {
        supporting_.spawn("admin", admin_.run());
    }
    for (auto& source : sources_) source->start_upkeep();
    supporting_.spawn("watchdog", feed_watchdog());
    if (options_.postgres != nullptr) supporting_.spawn("postgres", mind_postgres());
    auto starting = until_started();
    co_await std::move(starting);
    if (stop_requests_ == 0) {
        sd::ready("running");
        log_.info(
            "ready",
            {{"version", kVersion},
             {"tools", std::to_string(options_.config.tools.size())},
             {"admin", fmt::format("{}:{}", options_.config.admin.host, admin_.port())}}
        );
        if (options_.on_ready) options_.on_ready();
    }

    while (stop_requests_ == 0) co_await stop_.wait();
    sd::stopping("draining");
    faces_.stop();
    for (auto& source : sources_) {
        source->stop();
        ending_.spawn("end", end(*source));
    }
    co_await ending_.join();

    ended_ = true;
    for (auto* bell : {&watchdog_bell_, &postgres_bell_}) bell->ring();
    admin_.stop();
    signals_.cancel();
    const auto over = [](const auto& source) { return source->idle() && !source->checking(); };
    // Something does not let go: run() sees to it.
    if (!std::all_of(sources_.begin(), sources_.end(), over)) io_.stop();
}

asio::awaitable<void> App::end(Source& source) {
    auto joining = source.join();
    (void)co_await std::move(joining);
    source.end_upkeep();
}

// One alone: until it is at work. Of several: until each has started or was tried, and one has
// started; where none can be served, that ends the process as it would end for one.
asio::awaitable<void> App::until_started() {
    const auto begun = std::chrono::steady_clock::now();
    while (stop_requests_ == 0) {
        co_await stop_.wait(10ms);
        const auto lasting = std::chrono::steady_clock::now() - begun;
        bool settled = true;
        bool coming = false;
        for (const auto& source : sources_) {
            settled = settled && (source->started() || (!alone() && source->trouble_at_start()));
            coming = coming || outbox::pg::is_coming_up(source->trouble().value_or(""));
        }
        if (any_started() && (settled || lasting > kDatabasePatience)) co_return;
        const bool late = lasting > (coming ? kRecoveryPatience : kDatabasePatience);
        if (alone() || !late || any_opened()) continue;
        const auto& first = *sources_.front();
        unserved_.emplace(
            first.refusal(),
            fmt::format("no source can be served; {}: {}", first.name(), *first.trouble())
        );
        request_stop(first.refusal());
    }
}

void App::request_stop(int exit_code) {
    ++stop_requests_;
    exit_code_ = std::max(exit_code_, exit_code);
    stop_.ring();
}

void App::escaped(const std::string& name, const std::string& what) {
    log_.error("a task ended on a fault, stopping", {{"task", name}, {"error", what}});
    request_stop(kNo);
}

asio::awaitable<void> App::handle_signals() {
    for (;;) {
        auto [error, number] = co_await signals_.async_wait(asio::as_tuple(asio::use_awaitable));
        if (error) co_return;
        if (number == SIGHUP) {
            reload();
            continue;
        }
        if (stop_requests_ == 0) {
            log_.info("stopping on a signal", {{"signal", std::to_string(number)}});
            request_stop(kDone);
            continue;
        }
        log_.warn("another signal: not waiting for what runs");
        request_stop(kNo);
        for (auto& source : sources_) source->stop();
    }
}

void App::reload() {
    sd::reloading();
    const bool done = stop_requests_ == 0 && try_reload();
    metrics_.config_reloaded(done);
    if (!done) log_.error("the configuration was not reloaded, the old one stays");
    sd::ready("running");
}

// The new generation starts at once; the old one leases nothing more and drains beside it.
bool App::try_reload() {
    auto loaded = config::load(options_.config.file);
    auto toolsets = loaded.config ? compile(*loaded.config, loaded.diagnostics) : Toolsets{};
    if (toolsets.empty()) {
        for (const auto& diagnostic : loaded.diagnostics.all()) {
            if (diagnostic.severity != config::Severity::error) continue;
            log_.error("in the configuration", {{"diagnostic", config::to_text(diagnostic)}});
        }
        return false;
    }
    auto& config = *loaded.config;
    warn_of_restart(config);
    metrics_.add_tools(names_of(config));
    metrics_.add_credentials(credentials_of(config));
    faces_.configure(config);
    if (const auto level = parse_log_level(config.log.level)) log_.set_level(*level);
    // What takes a restart stays what it is; the next reload is compared with that. The namespace
    // belongs to the process, too: the keys of what is open were made with it.
    config.database = options_.config.database;
    config.admin = options_.config.admin;
    config.log.format = options_.config.log.format;
    options_.config = std::move(config);
    api_.use(options_.config);
    serve_all(std::move(toolsets));
    log_.info(
        "the configuration was reloaded", {{"tools", std::to_string(options_.config.tools.size())}}
    );
    return true;
}

}  // namespace outboxd
