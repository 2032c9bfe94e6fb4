#pragma once

#include <string>
#include <vector>

#include "config/diagnostics.hpp"

namespace tools {

// A path that a template names, for the lints.
struct Reference {
    std::string path;  // arguments.title
    config::Mark mark;
};

// What compiling one part of a tool needs to know, and what it finds. Mistakes are collected and
// compiling goes on: a file is reported with all of them at once.
struct CompileContext {
    config::Diagnostics& diagnostics;
    bool compensation = false;  // `original` may be used
    bool paginated = false;     // `page` may be used
    std::vector<Reference> references{};
};

}  // namespace tools
