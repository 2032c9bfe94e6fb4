#include "daemon/dev_config.hpp"

namespace outboxd {

const std::string_view kDevConfig =
    R"(# Written anew by every `outboxd dev`. Copy it, and start with: outboxd dev -c FILE
version: 1
database: { embedded: { data_dir: ./.outboxd/postgres } }
worker: { name: dev, drain_timeout: 5s }
log: { level: info, format: text }
tools:
  log:
    description: Writes the operation to the log and succeeds.
    effect: read
    execute: { type: log }
)";

}  // namespace outboxd
