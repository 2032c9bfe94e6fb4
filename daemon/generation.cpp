#include "daemon/generation.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>
#include <vector>

#include "daemon/uuid.hpp"
#include "daemon/version.hpp"

namespace outboxd {
namespace {

std::vector<std::string> names_of(const config::Config& config) {
    std::vector<std::string> names;
    for (const auto& tool : config.tools) names.push_back(tool.name);
    return names;
}

outbox::EngineSettings settings_of(
    const config::Config& config, outbox::WorkerId worker, const Surroundings& surroundings
) {
    outbox::EngineSettings settings;
    settings.worker = {
        .id = std::move(worker),
        .name = config.worker.name,
        .version = kVersion,
        .tools = names_of(config),
    };
    settings.siblings = surroundings.siblings;
    settings.limits = surroundings.limits;
    settings.key_namespace = surroundings.key_namespace;
    settings.concurrency = config.worker.concurrency;
    settings.max_result = config.limits.result;
    settings.margin = config.worker.lease_margin;
    settings.poll_busy = config.worker.poll_busy;
    settings.poll_idle = config.worker.poll_idle;
    settings.drain_timeout = config.worker.drain_timeout;
    return settings;
}

}  // namespace

Generation::Generation(
    const config::Config& config,
    std::unique_ptr<outbox::Toolset> tools,
    const Surroundings& surroundings
)
    : Generation(config, std::move(tools), surroundings, outbox::WorkerId(make_uuid())) {}

Generation::Generation(
    const config::Config& config,
    std::unique_ptr<outbox::Toolset> tools,
    const Surroundings& surroundings,
    const outbox::WorkerId& worker
)
    : worker_(worker),
      executor_(surroundings.executor),
      tools_(std::move(tools)),
      store_(surroundings.dsn, worker, &surroundings.observer, &surroundings.failpoints),
      engine_(
          executor_,
          store_,
          *tools_,
          surroundings.observer,
          surroundings.log,
          surroundings.failpoints,
          settings_of(config, worker, surroundings)
      ),
      answered_(executor_) {
    if (!config.worker.wakeup) return;
    outbox::pg::ListenerOptions options{
        .dsn = surroundings.dsn,
        .tools = names_of(config),
        .idle_poll = config.worker.poll_idle,
    };
    listener_ = std::make_unique<outbox::pg::Listener>(
        std::move(options), executor_, [this](const std::string&) { engine_.wake(); }
    );
    engine_.on_polled([this](const std::string& tool, bool found) {
        listener_->polled(tool, found);
    });
}

asio::awaitable<void> Generation::run() {
    if (listener_) listener_->start();
    auto running = engine_.run();
    co_await std::move(running);
    if (listener_) {
        listener_->stop();
        // What it had posted before it stopped runs ahead of this.
        co_await asio::post(executor_, asio::use_awaitable);
    }
    // Last: from here to the owner's destructor nothing else runs.
    while (asking_ > 0) co_await answered_.wait();
}

template <class Answer>
asio::awaitable<Answer> Generation::ask(asio::awaitable<Answer> asking) {
    ++asking_;
    Answer answer;
    std::exception_ptr failure;
    try {
        answer = co_await std::move(asking);
    } catch (...) {
        failure = std::current_exception();
    }
    --asking_;
    answered_.ring();
    if (failure) std::rethrow_exception(failure);
    co_return answer;
}

asio::awaitable<std::vector<outbox::ToolSample>> Generation::sample() {
    return ask(store_.sample());
}

asio::awaitable<outbox::pg::PrunePage> Generation::prune(
    outbox::pg::Prune what, std::chrono::milliseconds older_than, std::int64_t after, int rows
) {
    return ask(store_.prune(what, older_than, after, rows));
}

asio::awaitable<outbox::RollUp> Generation::roll_up() {
    return ask(store_.roll_up());
}

asio::awaitable<std::vector<outbox::AttentionCount>> Generation::attention() {
    return ask(store_.attention());
}

asio::awaitable<outbox::pg::Horizon> Generation::horizon() {
    return ask(store_.horizon());
}

}  // namespace outboxd
