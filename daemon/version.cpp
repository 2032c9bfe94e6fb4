#include "daemon/version.hpp"

namespace outboxd {

const char* const kVersion = OUTBOXD_VERSION;
const char* const kCommit = OUTBOXD_COMMIT;

}  // namespace outboxd
