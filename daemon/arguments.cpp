#include "daemon/arguments.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <iterator>

#include "daemon/command.hpp"

namespace outboxd {
namespace {

std::string read_stream(std::istream& in) {
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string content_of(const std::string& text) {
    if (!text.starts_with('@')) return text;
    if (text == "@-") return read_stream(std::cin);
    std::ifstream file(text.substr(1), std::ios::binary);
    if (!file) throw CommandError(kUsage, fmt::format("cannot read {}", text.substr(1)));
    return read_stream(file);
}

}  // namespace

outbox::Json read_arguments(const std::string& text) {
    auto parsed = outbox::parse_json(content_of(text));
    if (!parsed.value) {
        throw CommandError(
            kUsage, fmt::format("--arguments: {} (at byte {})", parsed.error, parsed.offset)
        );
    }
    if (parsed.value->as_object() == nullptr) {
        throw CommandError(kUsage, "--arguments must be a JSON object");
    }
    return std::move(*parsed.value);
}

}  // namespace outboxd
