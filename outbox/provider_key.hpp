#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "outbox/ids.hpp"
#include "outbox/policy.hpp"

namespace outbox {

// {{ operation.key }}: SHA-256 of namespace, a zero byte and the operation id, in the tool's
// encoding, behind its prefix, cut to max_length (contract/config.md).
[[nodiscard]] std::string provider_key(
    std::string_view key_namespace, const OperationId& id, const KeySettings& settings
);

// What is wrong with the settings (fewer than 96 bits would remain, a uuid cannot be cut), or
// empty when they are fine. Checked when the configuration loads.
[[nodiscard]] std::optional<std::string> check_key_settings(const KeySettings& settings);

}  // namespace outbox
