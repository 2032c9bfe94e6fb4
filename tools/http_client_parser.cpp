#include "tools/http_client_parser.hpp"

#include <algorithm>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <optional>
#include <utility>

#include "tools/http_client_request.hpp"

namespace tools {

namespace beast = boost::beast;
namespace http = beast::http;

namespace {

constexpr std::size_t kHeadLimit = std::size_t{64} * 1024;
constexpr std::size_t kReadSize = std::size_t{16} * 1024;
constexpr int kMaxInterim = 16;
// "0\r\n\r\n": no chunked body ends with less, and Beast insists on that much of a last chunk when
// it looks at it again.
constexpr std::size_t kLastChunk = 5;

// A body that is kept up to a limit; the first byte behind it ends the reading.
struct CappedBody {
    struct value_type {
        std::string text;
        std::size_t limit = 0;
        bool cut = false;
    };

    class reader {
     public:
        template <bool IsRequest, class Fields>
        reader(http::header<IsRequest, Fields>&, value_type& body) : body_(body) {}

        void init(const boost::optional<std::uint64_t>& length, beast::error_code& ec) {
            ec = {};
            // What a server merely announces must not take memory: reserve a little.
            if (length) body_.text.reserve(std::min<std::size_t>(*length, kReadSize));
        }

        template <class Buffers>
        std::size_t put(const Buffers& buffers, beast::error_code& ec) {
            ec = {};
            std::size_t taken = 0;
            for (auto buffer : beast::buffers_range_ref(buffers)) {
                std::size_t room = body_.limit - body_.text.size();
                std::size_t size = std::min(room, buffer.size());
                body_.text.append(static_cast<const char*>(buffer.data()), size);
                taken += size;
                if (size < buffer.size()) {
                    body_.cut = true;
                    ec = http::error::body_limit;
                    break;
                }
            }
            return taken;
        }

        void finish(beast::error_code& ec) { ec = {}; }

     private:
        value_type& body_;
    };
};

}  // namespace

struct ResponseParser::Inner {
    std::optional<http::response_parser<CappedBody>> parser;
    beast::flat_buffer buffer;
    bool answers_head;
    std::size_t max_body;
    int interim = 0;

    Inner(bool head, std::size_t limit) : answers_head(head), max_body(limit) { restart(); }

    void restart() {
        parser.emplace();
        parser->header_limit(kHeadLimit);
        parser->body_limit(boost::none);
        parser->skip(answers_head);
        parser->eager(true);
        parser->get().body().limit = max_body;
    }
};

ResponseParser::ResponseParser(bool answers_head, std::size_t max_body)
    : inner_(std::make_unique<Inner>(answers_head, max_body)) {}

ResponseParser::~ResponseParser() = default;

boost::asio::mutable_buffer ResponseParser::prepare() {
    return inner_->buffer.prepare(kReadSize);
}

ResponseParser::State ResponseParser::commit(std::size_t bytes) {
    begun_ = begun_ || bytes > 0;
    inner_->buffer.commit(bytes);
    return parse();
}

ResponseParser::State ResponseParser::parse() {
    auto& parser = inner_->parser;
    auto& buffer = inner_->buffer;
    while (buffer.size() > 0 && !parser->is_done()) {
        const bool in_chunks = parser->is_header_done() && parser->chunked();
        if (in_chunks && buffer.size() < kLastChunk) return State::more;
        beast::error_code ec;
        std::size_t used = parser->put(buffer.data(), ec);
        buffer.consume(used);
        if (ec == http::error::need_more) return State::more;
        if (parser->get().body().cut) return State::whole;
        if (ec) return broken("The answer is no valid HTTP: " + ec.message() + ".");
        // 101 would be the answer to an Upgrade, which is never asked for: taken as it is.
        int status = parser->is_header_done() ? static_cast<int>(parser->get().result_int()) : 0;
        if (parser->is_done() && status >= 100 && status < 200 && status != 101) {
            if (++inner_->interim > kMaxInterim) return broken("Too many interim answers.");
            inner_->restart();
        }
    }
    return parser->is_done() ? State::whole : State::more;
}

ResponseParser::State ResponseParser::end() {
    if (!inner_->parser->got_some()) return broken("The connection was closed without an answer.");
    beast::error_code ec;
    inner_->parser->put_eof(ec);
    if (ec) return broken("The connection was closed in the middle of the answer.");
    return State::whole;
}

ResponseParser::State ResponseParser::broken(std::string problem) {
    problem_ = std::move(problem);
    return State::broken;
}

bool ResponseParser::reusable() const {
    const auto& parser = *inner_->parser;
    return parser.is_done() && parser.keep_alive() && inner_->buffer.size() == 0 &&
           parser.get().result_int() >= 200;
}

HttpResponse ResponseParser::head() const {
    const auto& message = inner_->parser->get();
    HttpResponse response;
    response.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
        response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    return response;
}

boost::asio::awaitable<bool> ResponseParser::show(AnswerReader& reader) {
    if (!inner_->parser->is_header_done()) co_return false;
    if (!shown_) shown_ = head();
    const auto encoding = shown_->header("Content-Encoding");
    if (encoding && !same_name(*encoding, "identity")) co_return false;
    auto reading = reader.read(*shown_, inner_->parser->get().body().text);
    co_return co_await std::move(reading);
}

HttpResponse ResponseParser::take() {
    auto response = head();
    auto& kept = inner_->parser->get().body();
    response.truncated = kept.cut;
    response.body = std::move(kept.text);
    return response;
}

}  // namespace tools
