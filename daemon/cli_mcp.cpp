#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "daemon/command.hpp"
#include "daemon/log.hpp"
#include "daemon/mcp/pg_ledger.hpp"
#include "daemon/mcp/stdio.hpp"
#include "daemon/settled.hpp"
#include "daemon/text.hpp"

namespace outboxd {
namespace {

struct McpOptions {
    std::vector<std::string> tools;
    std::string run_id;
    std::string wait;
};

int serve(Context& context, const McpOptions& options) {
    auto [config, diagnostics] = load_config(context, context.config_file);
    auto made = mcp::Offer::make(config, options.tools);
    if (!made.offer) throw CommandError(kConfiguration, made.problem);
    if (made.offer->empty()) {
        throw CommandError(
            kConfiguration,
            "no tool is offered: give it expose: true in the configuration, or name it with --tool"
        );
    }
    StderrLog log(
        config.log.format == "text" ? LogFormat::text : LogFormat::json,
        parse_log_level(config.log.level).value_or(outbox::LogLevel::info)
    );
    boost::asio::io_context io{1};
    mcp::PgLedger ledger(database_of(context), io.get_executor());
    mcp::Face face(
        ledger, log, std::move(made.offer), parse_wait(options.wait).value_or(config.mcp.wait)
    );
    mcp::RunSource run;
    if (!options.run_id.empty()) run.run_id = options.run_id;
    run.hint =
        "_meta[\"" + std::string(mcp::kRunKey) + "\"] of the call, or --run-id of outboxd mcp";
    mcp::StdioServer server(io, face, std::move(run), STDIN_FILENO, STDOUT_FILENO);
    server.run();
    return kDone;
}

}  // namespace

void add_mcp_command(CLI::App& app, Context& context) {
    auto* command =
        app.add_subcommand("mcp", "An MCP server (stdio) that offers the tools to agents");
    auto options = std::make_shared<McpOptions>();
    add_config_option(*command, context);
    command->get_option("--config")->required();
    add_database_option(*command, context);
    command->add_option("--tool", options->tools, "Offer this tool; else those with expose: true")
        ->type_name("TOOL")
        ->allow_extra_args(false);
    command->add_option("--run-id", options->run_id, "The run of calls that name none themselves")
        ->type_name("R");
    command->add_option("--wait", options->wait, "How long a call waits for its end; else mcp.wait")
        ->type_name("30s");
    command->footer(
        "A daemon (outboxd run) carries the actions out; this only records them and waits.\n"
        "Example:\n"
        "  outboxd mcp -c outboxd.yaml --run-id \"$RUN_ID\"\n"
        "  outboxd mcp -c outboxd.yaml --tool create_ticket --wait 60s"
    );
    command->callback([&context, options] {
        context.command = [&context, options] { return serve(context, *options); };
    });
}

}  // namespace outboxd
