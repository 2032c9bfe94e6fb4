#include "outbox/provider_keys.hpp"

#include "outbox/provider_key.hpp"

namespace outbox {

asio::awaitable<std::string> ProviderKeys::key(
    OperationId id, const ToolPolicy& policy, std::int64_t request_hash
) {
    // 0: no attempt is recorded, so there is no earlier key either.
    if (request_hash == 0 || request_hash == policy.request_hash) {
        co_return provider_key(namespace_, id, policy.key);
    }
    auto look_up = store_.key_settings(policy.name, request_hash);
    const auto settings = co_await std::move(look_up);
    // Sending another key than the first attempt's could be a second effect.
    if (!settings) {
        throw StoreError(
            StoreError::Kind::data,
            "the key settings of the first attempt of " + id.value + " are not recorded"
        );
    }
    co_return provider_key(namespace_, id, *settings);
}

}  // namespace outbox
