#include "tools/toolset.hpp"

#include <algorithm>
#include <variant>
#include <vector>

#include "tools/compiled_tool.hpp"
#include "tools/encoding.hpp"
#include "tools/http_senders.hpp"
#include "tools/log_tool.hpp"
#include "tools/mcp_servers.hpp"
#include "tools/mcp_task_probe.hpp"

namespace tools {
namespace {

bool same_place(const config::Mark& a, const config::Mark& b) {
    const bool same_file = a.file == b.file || (a.file && b.file && *a.file == *b.file);
    return same_file && a.line == b.line && a.column == b.column && a.line != 0;
}

// Tools whose text has an error already: they were read with holes.
class Holes {
 public:
    Holes(const config::Config& config, const std::vector<config::Diagnostic>& known) {
        for (const auto& tool : config.tools) {
            const bool broken = std::any_of(known.begin(), known.end(), [&](const auto& other) {
                return other.severity == config::Severity::error &&
                       owner(config, other.mark) == &tool;
            });
            if (!broken) continue;
            places_.push_back(tool.mark);
            std::visit([&](const auto& part) { places_.push_back(part.mark); }, tool.execute);
            if (!tool.reconcile_by) continue;
            std::visit([&](const auto& part) { places_.push_back(part.mark); }, *tool.reconcile_by);
        }
    }

    // Whether it speaks of such a tool, or a request of it, as a whole: nothing new is said then.
    [[nodiscard]] bool speaks_of(const config::Mark& mark) const {
        return std::any_of(places_.begin(), places_.end(), [&](const auto& place) {
            return same_place(place, mark);
        });
    }

 private:
    // The tool in whose text the place is: the last one that begins before it, in the same file.
    static const config::Tool* owner(const config::Config& config, const config::Mark& mark) {
        const config::Tool* owner = nullptr;
        for (const auto& tool : config.tools) {
            const bool same_file = tool.mark.file && mark.file && *tool.mark.file == *mark.file;
            if (same_file && tool.mark.line <= mark.line &&
                (owner == nullptr || owner->mark.line <= tool.mark.line)) {
                owner = &tool;
            }
        }
        return owner;
    }

    std::vector<config::Mark> places_;
};

// Adds what was found, but no second error to a place that has one.
void merge(
    const config::Config& config, const config::Diagnostics& found, config::Diagnostics& into
) {
    const auto known = into.all();
    const Holes holes(config, known);
    for (const auto& diagnostic : found.all()) {
        const bool said = std::any_of(known.begin(), known.end(), [&](const auto& other) {
            return other.severity == config::Severity::error &&
                   same_place(other.mark, diagnostic.mark);
        });
        if (said || holes.speaks_of(diagnostic.mark)) continue;
        if (diagnostic.severity == config::Severity::error) {
            into.error(diagnostic.mark, diagnostic.message, diagnostic.hint);
        } else {
            into.warning(diagnostic.mark, diagnostic.message, diagnostic.hint);
        }
    }
}

// What was left out of the file has no place of its own: the tool's then.
void add_placed(
    const config::Diagnostics& own, const config::Mark& tool, config::Diagnostics& found
) {
    for (const auto& diagnostic : own.all()) {
        const auto& mark = diagnostic.mark.line > 0 ? diagnostic.mark : tool;
        if (diagnostic.severity == config::Severity::error) {
            found.error(mark, diagnostic.message, diagnostic.hint);
        } else {
            found.warning(mark, diagnostic.message, diagnostic.hint);
        }
    }
}

std::vector<CompiledTool> compile_all(
    const config::Config& config, config::Diagnostics& diagnostics
) {
    config::Diagnostics found;
    check_credentials(config.credentials, found);
    std::vector<CompiledTool> compiled;
    for (const auto& tool : config.tools) {
        if (tool.unreadable) continue;
        config::Diagnostics own;
        if (auto one = compile_tool(tool, config, own)) compiled.push_back(std::move(*one));
        add_placed(own, tool.mark, found);
    }
    merge(config, found, diagnostics);
    return compiled;
}

// The gates of a tool's two lanes.
struct Gates {
    std::shared_ptr<outbox::LaneGate> attempts;  // null: nobody is asked who could be down
    std::shared_ptr<outbox::LaneGate> probes;
    bool one_host = false;  // both lanes ask the same

    [[nodiscard]] LaneReporter of_attempts() const {
        return {attempts, one_host ? probes : nullptr};
    }
    [[nodiscard]] LaneReporter of_probes() const { return {probes, one_host ? attempts : nullptr}; }
};

// Of what is asked over the network; null: a process, a database, nobody.
template <class Http, class Mcp, class Variant>
const Origin* origin_in(const Variant& action) {
    if (const auto* http = std::get_if<Http>(&action)) return &http->request.origin();
    const auto* mcp = std::get_if<Mcp>(&action);
    if (mcp == nullptr || mcp->call.server() == nullptr) return nullptr;
    return &mcp->call.server()->origin();
}

const Origin* origin_of(const CompiledTool& tool, LaneGates::Lane lane) {
    if (lane == LaneGates::Lane::attempts) return origin_in<HttpExecute, McpExecute>(tool.execute);
    return tool.lookup ? origin_in<HttpLookup, McpLookup>(*tool.lookup) : nullptr;
}

// Only what is asked over the network can be down, or ask for patience. A resend is an attempt.
Gates make_gates(const CompiledTool& tool, LaneGates& gates) {
    using Lane = LaneGates::Lane;
    Gates out;
    const auto& name = tool.policy.name;
    const auto* performs = origin_of(tool, Lane::attempts);
    const auto* asks = origin_of(tool, Lane::probes);
    if (performs != nullptr) out.attempts = gates.of(name, Lane::attempts, tool.target);
    if (asks != nullptr) out.probes = gates.of(name, Lane::probes, tool.lookup_target);
    out.one_host =
        performs != nullptr && asks != nullptr && origin_text(*performs) == origin_text(*asks);
    if (tool.policy.reconcile.resend) out.probes = out.attempts;
    return out;
}

// What its attempts can be asked about by goes before the look-up: `probe` is wrapped then.
std::unique_ptr<Action> make_action(
    CompiledTool& tool,
    const Services& services,
    HttpSenders& senders,
    McpServers& servers,
    LaneReporter reporter,
    std::unique_ptr<Probe>& probe
) {
    if (auto* http = std::get_if<HttpExecute>(&tool.execute)) {
        auto sender = senders.of(tool.http, http->request.credential());
        return std::make_unique<HttpAction>(
            std::move(*http), std::move(sender), std::move(reporter)
        );
    }
    if (auto* command = std::get_if<CommandExecute>(&tool.execute)) {
        return std::make_unique<CommandAction>(
            std::move(*command), tool.output_limit, services.failpoints
        );
    }
    if (auto* sql = std::get_if<SqlExecute>(&tool.execute)) {
        auto database = services.databases->open(sql->sql.dsn);
        return std::make_unique<SqlAction>(std::move(*sql), std::move(database));
    }
    if (auto* mcp = std::get_if<McpExecute>(&tool.execute)) {
        auto server = servers.of(mcp->call, tool.http);
        auto execute = std::make_shared<const McpExecute>(std::move(*mcp));
        probe = std::make_unique<McpTaskProbe>(execute, server, std::move(probe));
        return std::make_unique<McpAction>(
            std::move(execute), std::move(server), services.failpoints, std::move(reporter)
        );
    }
    return std::make_unique<LogAction>(services.log);
}

std::unique_ptr<Probe> make_probe(
    CompiledTool& tool,
    const Services& services,
    HttpSenders& senders,
    McpServers& servers,
    LaneReporter reporter
) {
    if (tool.policy.own_transaction) return std::make_unique<OwnTransactionProbe>();
    if (tool.policy.reconcile.resend)
        return std::make_unique<NoProbe>("it is asked by sending the request again");
    if (!tool.lookup)
        return std::make_unique<NoProbe>("only a person can tell whether it happened");
    if (auto* http = std::get_if<HttpLookup>(&*tool.lookup)) {
        auto sender = senders.of(tool.http, http->request.credential());
        return std::make_unique<HttpProbe>(
            std::move(*http), std::move(sender), std::move(reporter)
        );
    }
    if (auto* sql = std::get_if<SqlLookup>(&*tool.lookup)) {
        // A lane of its own: an effect that waits for a lock does not hold up who asks about it.
        auto database = services.databases->open(sql->sql.dsn);
        return std::make_unique<SqlProbe>(std::move(*sql), std::move(database));
    }
    if (auto* mcp = std::get_if<McpLookup>(&*tool.lookup)) {
        auto server = servers.of(mcp->call, tool.http);
        return std::make_unique<McpProbe>(std::move(*mcp), std::move(server), std::move(reporter));
    }
    return std::make_unique<CommandProbe>(
        std::move(std::get<CommandLookup>(*tool.lookup)), tool.output_limit
    );
}

std::shared_ptr<SecretMask> make_mask(const config::Config& config) {
    auto mask = std::make_shared<SecretMask>(config.credentials, config.tools);
    std::vector<const config::Http*> settings = {&config.defaults.http};
    for (const auto& tool : config.tools) settings.push_back(&tool.http);
    for (const auto* http : settings) {
        if (!http->proxy) continue;
        const auto& proxy = *http->proxy;
        mask->add(proxy.secret.value);
        if (!proxy.user.empty()) mask->add(base64(proxy.user + ":" + proxy.secret.value));
    }
    return mask;
}

}  // namespace

void check_toolset(const config::Config& config, config::Diagnostics& diagnostics) {
    (void)compile_all(config, diagnostics);
}

std::vector<std::unique_ptr<outbox::Toolset>> build_toolsets(
    const config::Config& config,
    config::Diagnostics& diagnostics,
    const Services& services,
    const std::vector<outbox::SqlDatabases*>& databases
) {
    std::vector<std::unique_ptr<outbox::Toolset>> toolsets;
    auto compiled = compile_all(config, diagnostics);
    if (diagnostics.has_errors()) return toolsets;
    const auto mask = make_mask(config);
    HttpSenders senders(config, services, mask);
    McpServers servers(senders);
    LaneGates fresh(services.observer);
    auto* registry = services.gates != nullptr ? services.gates : &fresh;
    for (auto* own : databases) {
        auto here = services;
        here.databases = own;
        if (compiled.empty()) {  // moved into the toolset before
            config::Diagnostics known;
            compiled = compile_all(config, known);
        }
        auto toolset = std::make_unique<outbox::Toolset>();
        for (auto& tool : compiled) {
            auto gates = make_gates(tool, *registry);
            auto probe = make_probe(tool, here, senders, servers, gates.of_probes());
            auto action = make_action(tool, here, senders, servers, gates.of_attempts(), probe);
            toolset->add(
                {std::move(tool.policy),
                 std::make_unique<AdapterTool>(
                     std::move(action), std::move(probe), mask, std::move(tool.arguments)
                 ),
                 std::move(gates.attempts),
                 std::move(gates.probes)}
            );
        }
        compiled.clear();
        toolsets.push_back(std::move(toolset));
    }
    return toolsets;
}

std::unique_ptr<outbox::Toolset> build_toolset(
    const config::Config& config, config::Diagnostics& diagnostics, Services services
) {
    auto toolsets = build_toolsets(config, diagnostics, services, {services.databases});
    return toolsets.empty() ? nullptr : std::move(toolsets.front());
}

}  // namespace tools
