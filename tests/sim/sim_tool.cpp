#include "tests/sim/sim_tool.hpp"

#include <boost/asio/this_coro.hpp>
#include <memory>

namespace sim {

using namespace outbox;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

RetryLater not_sent(const std::string& code) {
    RetryLater later;
    later.error = {code, "Nothing was sent."};
    later.counts = false;
    return later;
}

}  // namespace

asio::awaitable<void> SimTool::connect() {
    const auto takes = dice_.chance(0.1) ? dice_.up_to(2 * draw_.write.timeout) : dice_.up_to(50ms);
    Bell bell(co_await asio::this_coro::executor);
    co_await bell.wait(takes);
}

asio::awaitable<Outcome> SimTool::execute(ToolCall call, Deadline deadline) {
    auto connecting = connect();
    co_await std::move(connecting);
    if (dice_.chance(draw_.connect_fails)) co_return not_sent("not_sent");
    // Nothing may come between this look at the clock and the first byte.
    if (deadline.passed()) co_return not_sent("not_sent_deadline");
    const auto executor = co_await asio::this_coro::executor;
    const auto request = std::make_shared<Request>(executor);
    provider_.send(call.intent.id.value, account_, request);
    while (!request->answer && !deadline.passed()) {
        co_await request->bell.wait(deadline.left());
    }
    Outcome outcome = Unknown{.cause = Cause::timeout, .error = {"timeout", "No answer in time."}};
    if (request->answer) outcome = *request->answer;
    if (on_answer) on_answer(call, outcome);
    co_return outcome;
}

asio::awaitable<Verdict> SimTool::probe(ToolCall call, Deadline deadline) {
    auto connecting = connect();
    co_await std::move(connecting);
    const auto executor = co_await asio::this_coro::executor;
    const auto look_up = std::make_shared<LookUp>(executor);
    provider_.look_up(call.intent.id.value, account_, look_up);
    while (!look_up->answer && !deadline.passed()) {
        co_await look_up->bell.wait(deadline.left());
    }
    if (!look_up->answer) co_return Inconclusive{{"timeout", "No answer in time."}};
    co_return *look_up->answer;
}

}  // namespace sim
