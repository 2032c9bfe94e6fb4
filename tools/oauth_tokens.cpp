#include "tools/oauth_tokens.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cctype>
#include <cstdlib>
#include <list>
#include <optional>
#include <utility>

#include "outbox/json.hpp"
#include "tools/answer.hpp"
#include "tools/encoding.hpp"
#include "tools/http_client_request.hpp"
#include "tools/url_template.hpp"

namespace tools {
namespace {

using outbox::BootClock;
using outbox::Deadline;
using outbox::Error;

// Where the answer does not say it.
constexpr std::chrono::seconds kUnsaid = std::chrono::minutes{5};
constexpr std::chrono::seconds kLongest = std::chrono::hours{24};
constexpr std::chrono::seconds kRememberFailure{1};
// Timers stand still while the machine sleeps: look at the boot clock this often.
constexpr std::chrono::nanoseconds kTick = std::chrono::milliseconds{250};

// A short word such as invalid_client: nobody hides a secret in it.
std::string error_word(const outbox::Json& body) {
    const auto* member = body.find("error");
    const auto* text = member != nullptr ? member->as_string() : nullptr;
    constexpr std::size_t kLongestWord = 40;
    if (text == nullptr || text->empty() || text->size() > kLongestWord) return {};
    const bool word = std::all_of(text->begin(), text->end(), [](char c) {
        return (c >= 'a' && c <= 'z') || c == '_';
    });
    return word ? ", " + *text : std::string();
}

// A number, or (some servers) a text that holds one.
std::chrono::seconds lifetime(const outbox::Json& body) {
    const auto* member = body.find("expires_in");
    if (member == nullptr) return kUnsaid;
    const auto* number = member->as_number();
    const auto* text = member->as_string();
    if (number == nullptr && text == nullptr) return kUnsaid;
    const double said = std::strtod(number ? number->text.c_str() : text->c_str(), nullptr);
    if (!(said > 0)) return std::chrono::seconds{0};
    const auto longest = static_cast<double>(kLongest.count());
    return std::chrono::seconds{static_cast<std::int64_t>(std::min(said, longest))};
}

bool is_bearer(const outbox::Json& body) {
    const auto* member = body.find("token_type");
    const auto* text = member != nullptr ? member->as_string() : nullptr;
    return text == nullptr || same_name(*text, "Bearer");
}

}  // namespace

HttpRequest token_request(const config::Credential& credential) {
    const auto& url = credential.token_url.value;
    HttpRequest request;
    request.method = "POST";
    request.origin = origin_of(url).value_or(Origin{});
    const auto slashes = url.find("://");
    const auto path = slashes == std::string::npos ? slashes : url.find_first_of("/?", slashes + 3);
    request.target = path == std::string::npos ? "/" : url.substr(path);
    if (request.target.front() == '?') request.target.insert(0, 1, '/');
    const auto id = percent_encode(credential.user_or_name);
    const auto secret = percent_encode(credential.secret.value);
    request.body = "grant_type=client_credentials";
    if (!credential.scope.empty()) request.body += "&scope=" + percent_encode(credential.scope);
    if (!credential.audience.empty()) {
        request.body += "&audience=" + percent_encode(credential.audience);
    }
    if (credential.secret_in_body) {
        request.body += "&client_id=" + id + "&client_secret=" + secret;
    } else {
        request.headers.emplace_back("Authorization", "Basic " + base64(id + ":" + secret));
    }
    request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
    request.headers.emplace_back("Accept", "application/json");
    return request;
}

std::variant<NewToken, std::string> read_token(const HttpResult& result) {
    if (const auto* failure = std::get_if<HttpFailure>(&result)) return failure->error.message;
    const auto& response = std::get<HttpResponse>(result);
    const auto parsed = outbox::parse_foreign_json(response.truncated ? "" : response.body);
    const outbox::Json nothing;
    const auto& body = parsed.value ? *parsed.value : nothing;
    const auto said = "it answered with status " + std::to_string(response.status);
    if (response.status != 200) return said + error_word(body);
    const auto* member = body.find("access_token");
    const auto* token = member != nullptr ? member->as_string() : nullptr;
    if (token == nullptr || token->empty()) return said + " and no access_token";
    if (has_control(*token) || token->find(' ') != std::string::npos) {
        return said + " and a token that no header can carry";
    }
    if (!is_bearer(body)) return said + " and a token of another type than Bearer";
    return NewToken{.value = *token, .expires_in = lifetime(body)};
}

std::chrono::nanoseconds used_for(std::chrono::seconds expires_in) {
    const auto margin = std::min<std::chrono::nanoseconds>(
        std::chrono::minutes{1}, std::chrono::nanoseconds(expires_in) / 10
    );
    return expires_in - margin;
}

struct OAuthTokens::State {
    asio::any_io_executor executor;
    config::Credential credential;
    std::shared_ptr<HttpSender> sender;
    Events events;

    std::string token;  // empty: none
    BootClock::time_point use_until{};
    std::optional<Error> failure;
    BootClock::time_point failure_until{};
    bool fetching = false;
    std::list<asio::steady_timer*> waiting;
    // What the last fetch brought, for those who waited for it: also a token for one use only.
    std::optional<Got> brought;
    int fetches = 0;  // ended ones

    State(asio::any_io_executor e, config::Credential c, std::shared_ptr<HttpSender> s, Events v)
        : executor(std::move(e)),
          credential(std::move(c)),
          sender(std::move(s)),
          events(std::move(v)) {}

    // Empty: the fetch was cut short by whoever made it, and says nothing about the other side.
    void ended(std::optional<Got> result) {
        fetching = false;
        ++fetches;
        brought = std::move(result);
        for (auto* timer : waiting) timer->cancel();
    }
};

OAuthTokens::OAuthTokens(
    asio::any_io_executor executor,
    config::Credential credential,
    std::shared_ptr<HttpSender> sender,
    Events events
)
    : state_(std::make_shared<State>(
          std::move(executor), std::move(credential), std::move(sender), std::move(events)
      )) {}

void OAuthTokens::refused(const std::string& token) {
    if (state_->token == token) state_->token.clear();
}

asio::awaitable<OAuthTokens::Got> OAuthTokens::get(Deadline deadline) {
    return get(state_, deadline);
}

asio::awaitable<OAuthTokens::Got> OAuthTokens::get(
    std::shared_ptr<State> state, Deadline deadline
) {
    while (true) {
        const auto now = BootClock::now();
        if (!state->token.empty() && now < state->use_until) {
            co_return Token{.value = state->token, .cached = true};
        }
        if (state->failure && now < state->failure_until) co_return *state->failure;
        if (!state->fetching) {
            auto fetching = fetch(state, deadline);
            co_return co_await std::move(fetching);
        }
        const int before = state->fetches;
        asio::steady_timer timer(state->executor);
        const auto place = state->waiting.insert(state->waiting.end(), &timer);
        bool cancelled = false;
        while (state->fetches == before && !cancelled && !deadline.passed()) {
            timer.expires_after(std::clamp(deadline.left(), std::chrono::nanoseconds{0}, kTick));
            co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
            auto cancellation = co_await asio::this_coro::cancellation_state;
            cancelled = cancellation.cancelled() != asio::cancellation_type::none;
        }
        state->waiting.erase(place);
        if (cancelled) {
            co_return Error{"not_sent_cancelled", "This process stops; nothing was sent."};
        }
        if (state->fetches == before) {
            co_return Error{
                "not_sent_deadline", "The time for this attempt ended while a token was fetched."
            };
        }
        // Fetched meanwhile is as fresh as fetched for this call.
        if (state->brought) co_return *state->brought;
    }
}

asio::awaitable<OAuthTokens::Got> OAuthTokens::fetch(
    std::shared_ptr<State> state, Deadline deadline
) {
    // Also when this coroutine is destroyed where it waits: others must not wait for it for ever.
    struct Ending {
        State& state;
        std::optional<Got> result;
        ~Ending() { state.ended(std::move(result)); }
    };
    state->fetching = true;
    Ending ending{*state, std::nullopt};
    auto sending = state->sender->send(token_request(state->credential), deadline);
    const auto result = co_await std::move(sending);
    const auto* failed = std::get_if<HttpFailure>(&result);
    const bool ours = failed != nullptr && (failed->error.code == "not_sent_cancelled" ||
                                            failed->error.code == "not_sent_deadline" ||
                                            failed->error.code == "cancelled");
    const auto read = read_token(result);
    if (const auto* fresh = std::get_if<NewToken>(&read)) {
        state->token = fresh->value;
        state->use_until = BootClock::now() + used_for(fresh->expires_in);
        state->failure.reset();
        if (state->events.fetched) state->events.fetched(fresh->value);
        ending.result = Token{.value = fresh->value, .cached = false};
        co_return Token{.value = fresh->value, .cached = false};
    }
    Error error{
        ours ? failed->error.code : "not_sent_credential",
        "No token for " + state->credential.name + " from " +
            to_text(token_request(state->credential).origin) + ": " + std::get<std::string>(read)
    };
    if (ours) co_return error;
    if (state->events.failed) state->events.failed();
    state->failure = error;
    state->failure_until = BootClock::now() + kRememberFailure;
    ending.result = error;
    co_return error;
}

}  // namespace tools
