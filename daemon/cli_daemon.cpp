#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <regex>
#include <set>
#include <string>

#include "config/load.hpp"
#include "daemon/app.hpp"
#include "daemon/command.hpp"
#include "daemon/demo.hpp"
#include "daemon/dev_config.hpp"
#include "daemon/embedded_postgres.hpp"
#include "daemon/log.hpp"
#include "daemon/ticket_desk.hpp"
#include "outbox/json.hpp"

namespace outboxd {
namespace {

constexpr const char* kDevFolder = "./.outboxd";

StderrLog make_log(const config::LogSettings& settings) {
    return StderrLog(
        settings.format == "text" ? LogFormat::text : LogFormat::json,
        parse_log_level(settings.level).value_or(outbox::LogLevel::info)
    );
}

int run_daemon(Context& context) {
    auto [config, diagnostics] = load_config(context, context.config_file);
    StderrLog log = make_log(config.log);
    const bool several = !config.database.sources.empty();
    if (several && !context.database.empty()) {
        throw CommandError(
            kUsage, "--database names one, but the configuration has database.sources: leave it out"
        );
    }
    const std::string given = several ? "" : given_database(context);
    std::optional<EmbeddedPostgres> postgres;
    if (given.empty() && config.database.embedded) {
        postgres.emplace(config.database.embedded->data_dir);
    }
    AppOptions options{
        .config = std::move(config),
        .diagnostics = std::move(diagnostics),
        .dsn = given,
        .postgres = postgres ? &*postgres : nullptr,
        .on_ready = nullptr,
    };
    if (postgres) options.dsn = postgres->dsn();
    if (options.dsn.empty()) options.dsn = options.config.database.dsn.value;
    return App(std::move(options), log).run();
}

// The file that `dev` runs on when none is given, so that there is something to look at and copy.
std::string write_dev_config() {
    std::filesystem::create_directories(kDevFolder);
    const std::string file = std::string(kDevFolder) + "/dev.yaml";
    std::ofstream out(file, std::ios::trunc);
    out << kDevConfig;
    if (!out.flush()) throw CommandError(kNo, "cannot write " + file);
    return file;
}

// What the templates of a tool without a schema ask for.
std::set<std::string> named_arguments(const config::Tool& tool) {
    static const std::regex kNamed(R"(\{\{ *arguments\.([A-Za-z_][A-Za-z0-9_]*))");
    config::Config alone;
    alone.tools.push_back(tool);
    const std::string text = config::print(alone);
    std::set<std::string> names;
    for (std::sregex_iterator one(text.begin(), text.end(), kNamed), end; one != end; ++one) {
        names.insert((*one)[1].str());
    }
    return names;
}

// Arguments the tool's schema and dedup.fields would take: every member they name says hello.
outbox::Json example_arguments(const config::Tool& tool) {
    outbox::Json arguments{outbox::Json::Object{}};
    for (const auto& field : tool.dedup_fields) arguments.set(field.value, "hello");
    const auto* required = tool.arguments ? tool.arguments->find("required") : nullptr;
    if (required != nullptr) {
        for (const auto& name : required->items) arguments.set(name.text, "hello");
    }
    if (!tool.arguments) {
        for (const auto& name : named_arguments(tool)) arguments.set(name, "hello");
    }
    return arguments;
}

// Postgres takes seconds to come up; that somebody sits on the port need not wait for it.
void check_port(const config::Admin& admin) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const auto port = std::to_string(admin.port);
    if (getaddrinfo(admin.host.c_str(), port.c_str(), &hints, &found) != 0) return;
    const int tried = socket(found->ai_family, found->ai_socktype, found->ai_protocol);
    const int on = 1;
    setsockopt(tried, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool taken =
        tried >= 0 && bind(tried, found->ai_addr, found->ai_addrlen) != 0 && errno == EADDRINUSE;
    if (tried >= 0) close(tried);
    freeaddrinfo(found);
    if (!taken) return;
    throw CommandError(
        kNo,
        fmt::format(
            "{}:{} is taken, another daemon may be running; choose another admin.listen in the "
            "configuration (outboxd dev takes one with -c FILE)",
            admin.host,
            admin.port
        )
    );
}

void print_greeting(
    const Context& context,
    const config::Config& config,
    const std::string& data_dir,
    const std::string& dsn
) {
    config::Tool none;
    none.name = "TOOL";
    const auto& tool = config.tools.empty() ? none : config.tools.front();
    auto arguments = outbox::to_text(example_arguments(tool));
    boost::algorithm::replace_all(arguments, "\"", "\\\"");  // it stands within a shell's quotes
    context.console.out << fmt::format(
        "\nA private Postgres is running, in {}; Ctrl-C ends it together with the daemon.\n"
        "  configuration  {}\n"
        "  database       {}\n"
        "  metrics        http://{}:{}/metrics\n\n"
        "Try, in another terminal:\n"
        "  psql \"{}\" -c \"SELECT * FROM outbox.enqueue('{}', '{}', "
        "run_id => 'first')\"\n"
        "  outboxd list --database \"{}\"\n\n",
        data_dir,
        config.file,
        dsn,
        config.admin.host,
        config.admin.port,
        dsn,
        tool.name,
        arguments,
        dsn
    );
    context.console.out.flush();
}

int dev(Context& context) {
    const bool own = context.config_file.empty();
    const std::string file = own ? write_dev_config() : context.config_file;
    // A file made for production takes its database from here; it is replaced below in any case.
    setenv("OUTBOXD_DATABASE", "host=/nonexistent", 0);
    auto [config, diagnostics] = load_config(context, file);
    StderrLog log = make_log(config.log);
    const auto embedded = config.database.embedded.value_or(
        config::Embedded{.data_dir = std::string(kDevFolder) + "/postgres"}
    );
    check_port(config.admin);
    EmbeddedPostgres postgres(embedded.data_dir);
    AppOptions options{
        .config = config,
        .diagnostics = std::move(diagnostics),
        .dsn = postgres.dsn(),
        .postgres = &postgres,
        .on_ready =
            [&context, &config = config, &embedded, &postgres] {
                print_greeting(context, config, embedded.data_dir, postgres.dsn());
            },
    };
    options.config.database.sources.clear();
    return App(std::move(options), log).run();
}

}  // namespace

void add_daemon_commands(CLI::App& app, Context& context) {
    auto* run = app.add_subcommand("run", "The daemon, in the foreground; logs go to stderr");
    run->add_option("-c,--config", context.config_file, "Configuration file")
        ->required()
        ->type_name("FILE");
    add_database_option(*run, context);
    run->footer(
        "SIGTERM drains, a second one aborts; SIGHUP reads the file again.\n\n"
        "Example:\n  outboxd run -c /etc/outboxd/outboxd.yaml"
    );
    run->callback([&context] { context.command = [&context] { return run_daemon(context); }; });

    auto* dev_command = app.add_subcommand(
        "dev", "The daemon on a private Postgres of its own, in ./.outboxd; nothing listens on TCP"
    );
    add_config_option(*dev_command, context);
    dev_command->footer("Example:\n  outboxd dev");
    dev_command->callback([&context] { context.command = [&context] { return dev(context); }; });

    auto* demo = app.add_subcommand(
        "demo", "Tell the story of the double ticket by running it, and count the tickets"
    );
    demo->footer("Example:\n  outboxd demo");
    demo->callback([&context] {
        context.command = [&context] { return run_demo(context.console); };
    });

    auto* desk = app.add_subcommand("ticket-desk", "The demo's ticket service");
    desk->group("");  // not shown
    auto port = std::make_shared<int>(0);
    desk->add_option("--port", *port, "Port on 127.0.0.1; 0 takes a free one")
        ->check(CLI::Range(0, 65535));
    desk->callback([&context, port] { context.command = [port] { return run_ticket_desk(*port); }; }
    );
}

}  // namespace outboxd
