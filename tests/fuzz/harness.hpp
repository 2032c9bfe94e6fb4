#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "outbox/json.hpp"
#include "outbox/tool.hpp"

// What the harnesses share. Each defines run_input(); an engine calls it: libFuzzer (engine.cpp)
// or the replay program (replay.cpp), which walks kept inputs and mutates them a little.
namespace fuzz {

// Takes one input through a parser and aborts where something that must hold does not. Inputs are
// untrusted; whatever is thrown past here is a finding too.
void run_input(std::string_view input);

// Prints what was broken, with some of the evidence, and aborts; in every build.
void must(bool holds, std::string_view what, std::string_view evidence = {});

// The parts of an input, between lines that hold "%%" and nothing else. Text stays readable, and
// a mutation of one part does not shift the others. At least `count` parts, empty ones at the end.
[[nodiscard]] std::vector<std::string_view> parts_of(std::string_view input, std::size_t count);

// The value of the nth character of a control line, below `bound`; 0 where the line is too short.
[[nodiscard]] unsigned choice(std::string_view control, std::size_t at, unsigned bound);

[[nodiscard]] bool is_utf8(std::string_view text);

// A configuration that the harness itself brings along; it must load without an error.
[[nodiscard]] config::Config configuration(const std::string& tools);

// Operation op-1 with a provider key that appears in no input by chance.
inline constexpr std::string_view kProviderKey = "marker-7f3a9c1e";
[[nodiscard]] outbox::ToolCall call_with(outbox::Json arguments);

// What the completer would store, checked to be a text that jsonb takes: no NUL, no surrogate, no
// number that jsonb refuses or writes out at length, within the limit.
void check_storable(const outbox::Json& value);

// Where the harness may write files; one folder per process, removed at its end.
[[nodiscard]] const std::string& folder();
void write_file(const std::string& path, std::string_view text);

}  // namespace fuzz
