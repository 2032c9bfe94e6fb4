#include "daemon/mcp/stdio.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

namespace outboxd::mcp {
namespace {

// Arguments of 1 MiB, as generously escaped as JSON allows.
constexpr std::size_t kMaxLine = std::size_t{8} * 1024 * 1024;
constexpr int kRoom = 64;
// How long the end waits for a reader that takes nothing.
constexpr auto kPatience = std::chrono::seconds(3);

}  // namespace

StdioServer::StdioServer(asio::io_context& io, Face& face, RunSource run, int in, int out)
    : io_(io),
      face_(face),
      run_(std::move(run)),
      out_(out),
      reader_(in, kMaxLine),
      signals_(signal_io_, SIGINT, SIGTERM),
      room_(kRoom),
      tasks_(io.get_executor(), [this](const auto&, const auto&) { stop(); }) {}

void StdioServer::run() {
    auto work = asio::make_work_guard(io_);
    signals_.async_wait([this](const boost::system::error_code& error, int) {
        if (error) return;
        ending_ = true;
        asio::post(io_, [this] { stop(); });
    });
    std::thread hearing([this] { signal_io_.run(); });
    std::thread reading([this, &work] {
        reader_.run([this](LineReader::Line line) {
            room_.acquire();
            asio::post(io_, [this, line = std::move(line)]() mutable {
                room_.release();
                take(std::move(line));
            });
        });
        ending_ = true;
        asio::post(io_, [this, &work] {
            stop();
            work.reset();
        });
    });
    io_.run();
    reading.join();
    signal_io_.stop();
    hearing.join();
}

void StdioServer::take(LineReader::Line line) {
    if (broken_) return;
    Message message;
    if (line.too_long) {
        message.fault = {kInvalidRequest, "The message is longer than 8 MiB", {}, 413};
    } else {
        message = read_message(line.text);
    }
    if (message.method == "notifications/cancelled") return cancel(message);
    const auto call = calls_.emplace(calls_.end(), io_.get_executor());
    call->id = message.id;
    call->exchange.run = run_;
    call->exchange.stopped = stopping_;
    call->exchange.notify = [this, call](std::string text) { return tell(std::move(text), call); };
    tasks_.spawn("call", answer(std::move(message), call));
}

// Nobody waits for the answer any more. What was recorded is carried out all the same: only a
// person, or outbox.cancel before the first attempt, takes it back.
void StdioServer::cancel(const Message& notification) {
    const auto* id = notification.params.find("requestId");
    if (id == nullptr) return;
    for (auto& call : calls_) {
        if (!call.id.equals(*id)) continue;
        call.cancelled = true;
        call.exchange.stop_waiting();
    }
}

asio::awaitable<void> StdioServer::answer(Message message, std::list<Call>::iterator call) {
    auto handling = face_.handle(std::move(message), call->exchange);
    const auto reply = co_await std::move(handling);
    if (!call->cancelled && !reply.text.empty()) write(reply.text);
    calls_.erase(call);
}

asio::awaitable<bool> StdioServer::tell(std::string text, std::list<Call>::iterator call) {
    if (!call->cancelled) write(text);
    co_return !broken_ && !call->cancelled;
}

void StdioServer::write(const std::string& text) {
    if (broken_) return;
    broken_ = !write_all(out_, text + "\n", ending_, kPatience);
    if (broken_) stop();
}

void StdioServer::stop() {
    stopping_ = true;
    reader_.stop();
    for (auto& call : calls_) call.exchange.stop_waiting();
}

}  // namespace outboxd::mcp
