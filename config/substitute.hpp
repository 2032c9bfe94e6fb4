#pragma once

#include <optional>
#include <string>

#include "config/diagnostics.hpp"
#include "config/value.hpp"

namespace config {

// Resolves ${env:VAR}, ${env:VAR:-default}, ${file:/path} and ${cred:name} in every value of the
// tree, once; $${ stands for ${. What a value brings in is never looked at again, and may neither
// make nor stand inside a {{ template }}: arguments must never reach the environment.
// Relative paths are relative to `folder`.
void substitute(Value& tree, const std::string& folder, Diagnostics& diagnostics);

// The text of a small file without the line end behind it, or why not.
struct FileText {
    std::optional<std::string> text;
    std::string error;
};
[[nodiscard]] FileText read_secret_file(const std::string& path);

}  // namespace config
