// A configuration file of arbitrary bytes: it loads, or every mistake has a place. What loads
// prints, and what is printed loads again as the same.
#include <algorithm>
#include <cstdlib>

#include "config/load.hpp"
#include "tests/fuzz/harness.hpp"
#include "tools/toolset.hpp"

namespace {

using fuzz::must;

// The environment is the same on every machine.
const bool kEnvironment = [] {
    unsetenv("CREDENTIALS_DIRECTORY");
    setenv("HOSTNAME", "fuzz", 1);
    setenv("OUTBOXD_DATABASE", "host=/nowhere", 1);
    return true;
}();

void check_diagnostics(const config::Diagnostics& diagnostics, std::string_view text) {
    const auto lines = 1 + std::count(text.begin(), text.end(), '\n');
    for (const auto& diagnostic : diagnostics.all()) {
        const auto shown = config::to_text(diagnostic);
        const auto& mark = diagnostic.mark;
        must(mark.file && !mark.file->empty(), "a diagnostic names its file", shown);
        must(mark.line >= 1 && mark.column >= 1, "a diagnostic has a place", shown);
        must(mark.line <= lines + 1, "the place is in the file", shown);
        must(!diagnostic.message.empty(), "a diagnostic says something", shown);
        must(
            outbox::parse_json(config::to_json(diagnostic)).value.has_value(),
            "a diagnostic is JSON",
            shown
        );
    }
}

config::Loaded check(const std::string& path, std::string_view text) {
    fuzz::write_file(path, text);
    auto loaded = config::load(path);
    must(
        loaded.config.has_value() != loaded.diagnostics.has_errors(),
        "a configuration, or errors",
        path
    );
    // As check-config does, with whatever could be read.
    const auto& readable = loaded.config ? loaded.config : loaded.partial;
    if (readable) tools::check_toolset(*readable, loaded.diagnostics);
    loaded.diagnostics.sort();
    check_diagnostics(loaded.diagnostics, text);
    return loaded;
}

std::string errors_of(const config::Diagnostics& diagnostics) {
    std::string all;
    for (const auto& diagnostic : diagnostics.all()) all += to_text(diagnostic) + "\n";
    return all;
}

}  // namespace

void fuzz::run_input(std::string_view input) {
    const auto loaded = check(folder() + "/outboxd.yaml", input);
    if (!loaded.config || loaded.diagnostics.has_errors()) return;
    const auto printed = config::print(*loaded.config);
    const auto again = check(folder() + "/printed.yaml", printed);
    must(
        again.config && !again.diagnostics.has_errors(),
        "what is printed loads again",
        errors_of(again.diagnostics) + printed
    );
    must(config::print(*again.config) == printed, "what is printed prints the same", printed);
}
