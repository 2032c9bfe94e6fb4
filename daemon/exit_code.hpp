#pragma once

namespace outboxd {

// The exit codes of every command (contract/cli.md); scripts rely on them.
enum ExitCode : int {
    kDone = 0,
    kNo = 1,  // not found, failed, too late, timed out, aborted
    kUsage = 2,
    kConfiguration = 3,
    kDatabaseUnreachable = 4,
    kSchemaMismatch = 5,  // too old or too new for this binary
};

}  // namespace outboxd
