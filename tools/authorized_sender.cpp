#include "tools/authorized_sender.hpp"

#include <boost/asio/this_coro.hpp>
#include <exception>
#include <utility>

namespace tools {

// A cancellation is answered with what is known about the first byte, not with an exception.
asio::awaitable<HttpResult> AuthorizedSender::send(HttpRequest request, outbox::Deadline deadline) {
    bool throwing = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    auto sending = authorize_and_send(std::move(request), deadline);
    HttpResult result;
    std::exception_ptr error;
    try {
        result = co_await std::move(sending);
    } catch (...) {
        error = std::current_exception();
    }
    co_await asio::this_coro::throw_if_cancelled(throwing);
    if (error) std::rethrow_exception(error);
    co_return result;
}

asio::awaitable<HttpResult> AuthorizedSender::authorize_and_send(
    HttpRequest request, outbox::Deadline deadline
) {
    OAuthTokens::Token token;
    if (tokens_) {
        auto getting = tokens_->get(deadline);
        auto got = co_await std::move(getting);
        if (auto* error = std::get_if<outbox::Error>(&got)) {
            co_return HttpFailure{
                .sent = false, .cause = outbox::Cause::other, .error = std::move(*error)
            };
        }
        token = std::move(std::get<OAuthTokens::Token>(got));
        request.headers.emplace_back("Authorization", "Bearer " + token.value);
    }
    auto sending = sender_->send(std::move(request), deadline);
    HttpResult result = co_await std::move(sending);
    if (const auto* failure = std::get_if<HttpFailure>(&result)) {
        // The certificate that this client would have shown has expired.
        if (failure->error.code == "not_sent_credential") count(certificate_);
        co_return result;
    }
    auto& response = std::get<HttpResponse>(result);
    if (response.status != 401) co_return result;
    if (tokens_) tokens_->refused(token.value);
    // A token may be withdrawn at any time: only a fresh one that is refused is an error.
    response.token_was_stale = token.cached;
    if (!token.cached) count(credential_.empty() ? certificate_ : credential_);
    co_return result;
}

void AuthorizedSender::count(const std::string& credential) {
    if (observer_ != nullptr) observer_->credential_error(credential);
}

}  // namespace tools
