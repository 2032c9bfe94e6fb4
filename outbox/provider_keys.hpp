#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <utility>

#include "outbox/ids.hpp"
#include "outbox/policy.hpp"
#include "outbox/store.hpp"

namespace outbox {

// The key an operation's attempts and probes use: always that of its first attempt, also when the
// tool's key settings changed since. Runs on the io thread.
class ProviderKeys {
 public:
    ProviderKeys(Store& store, std::string key_namespace)
        : store_(store), namespace_(std::move(key_namespace)) {}

    // Throws StoreError when the stored settings cannot be read.
    asio::awaitable<std::string> key(
        OperationId id, const ToolPolicy& policy, std::int64_t request_hash
    );

 private:
    Store& store_;
    std::string namespace_;
};

}  // namespace outbox
