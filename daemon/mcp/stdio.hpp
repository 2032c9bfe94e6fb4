#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <list>
#include <semaphore>
#include <string>

#include "daemon/mcp/face.hpp"
#include "daemon/mcp/lines.hpp"
#include "outbox/task_group.hpp"

namespace outboxd::mcp {

// The face on standard input and output, one message a line. The caller's thread runs the io
// context and writes; a thread of its own reads. It ends when the input does, when nobody reads the
// output any more, or on SIGTERM and SIGINT: calls that wait are then answered with what is known,
// and what was recorded goes on in the daemon.
class StdioServer {
 public:
    StdioServer(asio::io_context& io, Face& face, RunSource run, int in, int out);

    // Runs to the end.
    void run();

 private:
    struct Call {
        explicit Call(const asio::any_io_executor& executor) : exchange(executor) {}
        outbox::Json id;
        Exchange exchange;
        bool cancelled = false;  // no answer is wanted
    };

    void take(LineReader::Line line);
    void cancel(const Message& notification);
    asio::awaitable<void> answer(Message message, std::list<Call>::iterator call);
    asio::awaitable<bool> tell(std::string text, std::list<Call>::iterator call);
    void write(const std::string& text);
    void stop();

    asio::io_context& io_;
    Face& face_;
    RunSource run_;
    int out_;
    LineReader reader_;
    // Signals are heard on a thread of their own: this one may stand in a write that nobody reads.
    asio::io_context signal_io_{1};
    asio::signal_set signals_;
    std::atomic<bool> ending_ = false;
    std::list<Call> calls_;
    // Lines that were read and not yet looked at: a client that floods us waits.
    std::counting_semaphore<> room_;
    bool stopping_ = false;
    bool broken_ = false;  // nobody reads the output
    outbox::TaskGroup tasks_;
};

}  // namespace outboxd::mcp
