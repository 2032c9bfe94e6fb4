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
#include "outbox/pg/client.hpp"
#include "outbox/pg/migrator.hpp"
#include "outbox/pg/pg_error.hpp"
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

std::vector<std::string> credentials_of(const config::Config& config) {
    std::vector<std::string> names;
    for (const auto& [name, credential] : config.credentials) names.push_back(name);
    return names;
}

AdminOptions admin_options(const config::Admin& admin) {
    return {
        .host = admin.host, .port = admin.port, .hosts = admin.hosts, .token_file = admin.token_file
    };
}

// What agents are offered; the loader has refused what cannot be.
std::shared_ptr<const mcp::Offer> offer_of(const config::Config& config) {
    auto made = mcp::Offer::make(config, {});
    if (!made.offer) throw CommandError(kConfiguration, made.problem);
    return std::move(made.offer);
}

}  // namespace

App::App(AppOptions options, StderrLog& log)
    : options_(std::move(options)),
      log_(log),
      databases_(options_.dsn, &failpoints_),
      signals_(io_, SIGINT, SIGTERM, SIGHUP),
      metrics_(
          names_of(options_.config),
          options_.config.database.key_namespace,
          {.version = kVersion, .commit = kCommit}
      ),
      ledger_(options_.dsn, io_.get_executor()),
      face_(ledger_, log_, offer_of(options_.config), options_.config.mcp.wait),
      http_face_(io_.get_executor(), face_, options_.config.mcp.run_header),
      admin_(
          io_.get_executor(),
          admin_options(options_.config.admin),
          metrics_,
          [this] { return readiness(); }
      ),
      api_(io_.get_executor(), options_.dsn, options_.config),
      working_(
          io_.get_executor(), [this](const auto& name, const auto& what) { escaped(name, what); }
      ),
      supporting_(
          io_.get_executor(), [this](const auto& name, const auto& what) { escaped(name, what); }
      ),
      stop_(io_.get_executor()),
      sample_bell_(io_.get_executor()),
      retention_bell_(io_.get_executor()),
      watchdog_bell_(io_.get_executor()),
      postgres_bell_(io_.get_executor()) {
    metrics_.add_credentials(credentials_of(options_.config));
    api_.serve_on(admin_);
    serve_page_on(admin_);
    admin_.add({
        .method = "POST",
        .path = "/mcp",
        .access = Access::write,
        .handler = [this](ServerRequest request) { return http_face_.post(std::move(request)); },
    });
    arm_failpoints();
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
    auto tools = compile(options_.config, options_.diagnostics);
    if (!tools) throw ConfigurationError(options_.diagnostics);
    supporting_.spawn("signals", handle_signals());
    wait_for_database();
    if (stop_requests_ > 0) return kDone;
    start_generation(options_.config, std::move(tools));
    supporting_.spawn("main", serve());
    io_.run();
    // A tool that does not let go of its call must not keep the process; its operation is unknown.
    for (const auto& generation : generations_) {
        if (generation->engine().idle()) continue;
        log_.error("a tool did not end when it was cut, exiting without it");
        if (options_.postgres != nullptr) options_.postgres->stop();
        std::_Exit(kNo);
    }
    return exit_code_;
}

// Blocks: nothing else runs yet but the signals.
void App::wait_for_database() {
    const auto start = std::chrono::steady_clock::now();
    auto pause = 100ms;
    for (;;) {
        io_.poll();
        if (stop_requests_ > 0) return;
        try {
            return check_database();
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

void App::check_database() {
    if (options_.postgres != nullptr) outbox::pg::migrate(options_.dsn);  // ours alone
    const auto state = outbox::pg::schema_state(options_.dsn);
    if (state.fit != outbox::pg::SchemaFit::fits) {
        throw CommandError(kSchemaMismatch, state.message);
    }
    const auto& wanted = options_.config.database.key_namespace;
    outbox::pg::Client client(options_.dsn);
    const std::string recorded = client.claim_namespace(wanted);
    if (recorded != wanted) {
        throw CommandError(
            kConfiguration,
            fmt::format(
                "database.namespace is {} here, but this outbox was started with {}; every "
                "provider key depends on it",
                wanted,
                recorded
            )
        );
    }
}

std::unique_ptr<outbox::Toolset> App::compile(
    const config::Config& config, config::Diagnostics& diagnostics
) {
    auto tools = tools::build_toolset(
        config,
        diagnostics,
        {.executor = io_.get_executor(),
         .failpoints = failpoints_,
         .log = log_,
         .observer = &metrics_,
         .databases = &databases_,
         .gates = &gates_}
    );
    diagnostics.sort();
    for (const auto& diagnostic : diagnostics.all()) {
        if (diagnostic.severity != config::Severity::warning) continue;
        log_.warn("in the configuration", {{"diagnostic", config::to_text(diagnostic)}});
    }
    return tools;
}

void App::start_generation(const config::Config& config, std::unique_ptr<outbox::Toolset> tools) {
    Surroundings surroundings{
        .executor = io_.get_executor(),
        .observer = metrics_,
        .log = log_,
        .failpoints = failpoints_,
        .dsn = options_.dsn,
        .siblings = {},
    };
    for (const auto& one : generations_) surroundings.siblings.push_back(one->worker());
    auto& generation = *generations_.emplace_back(
        std::make_unique<Generation>(config, std::move(tools), surroundings)
    );
    working_.spawn("generation", run_generation(generation));
}

asio::awaitable<void> App::run_generation(Generation& generation) {
    auto running = generation.run();
    co_await std::move(running);
    if (generation.engine().failed()) request_stop(kNo);
    if (generation.engine().idle()) {
        generations_.remove_if([&](const auto& one) { return one.get() == &generation; });
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
    supporting_.spawn("sample", sample());
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
        supporting_.spawn("retention", keep_retention());
    }

    while (stop_requests_ == 0) co_await stop_.wait();
    sd::stopping("draining");
    http_face_.stop();
    for (auto& generation : generations_) generation->stop();
    co_await working_.join();

    ended_ = true;
    for (auto* bell : {&sample_bell_, &retention_bell_, &watchdog_bell_, &postgres_bell_})
        bell->ring();
    admin_.stop();
    signals_.cancel();
    if (!generations_.empty()) io_.stop();  // a tool did not let go: run() sees to it
}

asio::awaitable<void> App::until_started() {
    while (stop_requests_ == 0 && !generations_.back()->engine().health().started) {
        co_await stop_.wait(10ms);
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
        for (auto& generation : generations_) generation->stop();
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
    auto tools = loaded.config ? compile(*loaded.config, loaded.diagnostics) : nullptr;
    if (!tools) {
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
    for (auto& generation : generations_) {
        generation->supersede();
    }
    // It belongs to the process: the keys of what is open were made with it.
    config.database.key_namespace = options_.config.database.key_namespace;
    start_generation(config, std::move(tools));
    face_.configure(offer_of(config), config.mcp.wait);
    http_face_.configure(config.mcp.run_header);
    if (const auto level = parse_log_level(config.log.level)) log_.set_level(*level);
    // What takes a restart stays what it is; the next reload is compared with that.
    config.database = options_.config.database;
    config.admin = options_.config.admin;
    config.log.format = options_.config.log.format;
    options_.config = std::move(config);
    api_.use(options_.config);
    log_.info(
        "the configuration was reloaded", {{"tools", std::to_string(options_.config.tools.size())}}
    );
    return true;
}

// Some settings belong to the process; changing them needs a new one.
void App::warn_of_restart(const config::Config& config) {
    const auto& old = options_.config;
    const auto warn = [&](bool changed, std::string key) {
        if (changed) log_.warn("this setting takes a restart to change", {{"key", std::move(key)}});
    };
    warn(config.database.dsn.value != old.database.dsn.value, "database.dsn");
    warn(config.database.key_namespace != old.database.key_namespace, "database.namespace");
    warn(
        config.admin.host != old.admin.host || config.admin.port != old.admin.port, "admin.listen"
    );
    warn(config.admin.hosts != old.admin.hosts, "admin.hosts");
    warn(config.admin.token_file != old.admin.token_file, "admin.token_file");
    warn(config.log.format != old.log.format, "log.format");
}

}  // namespace outboxd
