#pragma once

namespace outboxd {

extern const char* const kVersion;  // from CMake's project()
extern const char* const kCommit;   // of the checkout it was configured in

}  // namespace outboxd
