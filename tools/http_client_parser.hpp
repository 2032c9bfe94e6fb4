#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "tools/http_client.hpp"

namespace tools {

// Reads one response out of the bytes of a connection, interim ones (100, 103) skipped. The body
// is kept up to a limit; what lies behind it is never read. Hides Beast from everybody else.
class ResponseParser {
 public:
    enum class State {
        more,    // the response is not whole yet
        whole,   // it is, or it is cut at the limit
        broken,  // it is no HTTP, or it ended before its end
    };

    ResponseParser(bool answers_head, std::size_t max_body);
    ~ResponseParser();
    ResponseParser(const ResponseParser&) = delete;
    ResponseParser& operator=(const ResponseParser&) = delete;

    // Room for the next bytes, then how many came.
    [[nodiscard]] boost::asio::mutable_buffer prepare();
    State commit(std::size_t bytes);
    // The other side closed its end.
    State end();

    [[nodiscard]] bool begun() const { return begun_; }  // at least one byte came
    [[nodiscard]] const std::string& problem() const { return problem_; }
    // Whole, kept alive by the other side, and not a byte too many.
    [[nodiscard]] bool reusable() const;
    [[nodiscard]] HttpResponse take();
    // Shows the reader what is there, once the head is whole. True: it needs nothing more.
    boost::asio::awaitable<bool> show(AnswerReader& reader);

 private:
    State parse();
    State broken(std::string problem);
    [[nodiscard]] HttpResponse head() const;

    struct Inner;
    std::unique_ptr<Inner> inner_;
    bool begun_ = false;
    std::string problem_;
    std::optional<HttpResponse> shown_;  // the head, for a reader
};

}  // namespace tools
