#include "tests/fuzz/harness.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/load.hpp"
#include "outbox/decimal.hpp"
#include "outbox/utf8.hpp"

namespace fuzz {
namespace {

// limits.result of the harnesses: small, so that cutting is tried too.
constexpr std::size_t kResultLimit = 1024;

void check_text(std::string_view text) {
    must(text.find('\0') == std::string_view::npos, "what is stored has no NUL", text);
}

// What jsonb refuses, or would write out at length.
void check_leaves(const outbox::Json& value) {
    if (const auto* number = value.as_number()) {
        const auto decimal = outbox::parse_decimal(number->text);
        must(!decimal.huge && std::abs(decimal.exponent) <= 1000, "jsonb number", number->text);
    } else if (const auto* string = value.as_string()) {
        check_text(*string);
    } else if (const auto* array = value.as_array()) {
        for (const auto& item : *array) check_leaves(item);
    } else if (const auto* object = value.as_object()) {
        for (const auto& [key, item] : *object) {
            check_text(key);
            check_leaves(item);
        }
    }
}

struct Folder {
    std::string path;
    Folder() {
        auto pattern = (std::filesystem::temp_directory_path() / "outboxd-fuzz-XXXXXX").string();
        must(mkdtemp(pattern.data()) != nullptr, "a temporary folder");
        path = pattern;
    }
    ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
};

}  // namespace

void must(bool holds, std::string_view what, std::string_view evidence) {
    if (holds) return;
    const auto text =
        "BROKEN: " + std::string(what) + "\n" + std::string(evidence.substr(0, 2000)) + "\n";
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::abort();
}

std::vector<std::string_view> parts_of(std::string_view input, std::size_t count) {
    constexpr std::string_view kLine = "\n%%\n";
    std::vector<std::string_view> parts;
    for (;;) {
        const auto end = input.find(kLine);
        parts.push_back(input.substr(0, end));
        if (end == std::string_view::npos) break;
        input.remove_prefix(end + kLine.size());
    }
    if (parts.size() < count) parts.resize(count);
    return parts;
}

unsigned choice(std::string_view control, std::size_t at, unsigned bound) {
    if (at >= control.size()) return 0;
    const auto c = static_cast<unsigned char>(control[at]);
    return (c >= '0' && c <= '9' ? c - unsigned{'0'} : unsigned{c}) % bound;
}

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto length = outbox::utf8_sequence(text, at);
        if (length == 0) return false;
        at += length;
    }
    return true;
}

config::Config configuration(const std::string& tools) {
    const auto path = folder() + "/own.yaml";
    write_file(path, "version: 1\ndatabase: { dsn: host=/nowhere }\ntools:\n" + tools);
    auto loaded = config::load(path);
    for (const auto& diagnostic : loaded.diagnostics.all()) {
        must(diagnostic.severity != config::Severity::error, to_text(diagnostic));
    }
    return std::move(*loaded.config);
}

outbox::ToolCall call_with(outbox::Json arguments) {
    using namespace std::chrono_literals;
    outbox::ToolCall call;
    call.intent.id = outbox::OperationId("op-1");
    call.intent.tool = "tool";
    call.intent.created_at = outbox::DbTime{1'767'323'045s};
    call.intent.arguments = std::move(arguments);
    call.first_sent_at = outbox::DbTime{1'767'323'046s};
    call.provider_key = kProviderKey;
    return call;
}

void check_storable(const outbox::Json& value) {
    const auto stored = outbox::storable(value, kResultLimit);
    const auto text = outbox::to_text(stored);
    must(is_utf8(text), "what is stored is UTF-8", text);
    must(text.size() <= kResultLimit, "what is stored keeps limits.result", text);
    const auto again = outbox::parse_json(text);
    must(again.value.has_value(), "what is stored is JSON", text);
    check_leaves(*again.value);
    must(outbox::to_text(outbox::storable(stored, kResultLimit)) == text, "storable twice", text);
}

const std::string& folder() {
    static const Folder kFolder;
    return kFolder.path;
}

void write_file(const std::string& path, std::string_view text) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << text;
    must(static_cast<bool>(out.flush()), "a temporary file", path);
}

}  // namespace fuzz
