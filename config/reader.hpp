#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/diagnostics.hpp"
#include "config/value.hpp"

namespace config {

template <class T>
struct Range {
    T min;
    T max;
};

// Typed access to one mapping. Every key that is asked for is a known one; finish() reports the
// rest with the nearest known name. Each reading function leaves `out` alone and returns false
// when the member is absent, and reports what is wrong with it otherwise: checking goes on.
class MapReader {
 public:
    // `key_mark` is where a missing member is reported; `path` names the mapping: worker.poll.
    MapReader(const Value* value, Mark key_mark, std::string path, Diagnostics& diagnostics);

    [[nodiscard]] bool is_mapping() const { return mapping_ != nullptr; }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const Mark& key_mark() const { return key_mark_; }
    [[nodiscard]] Diagnostics& diagnostics() { return diagnostics_; }

    // The member, or nullptr when it is absent or null.
    const Value::Member* member(std::string_view key);
    const Value* value(std::string_view key);
    // The same, reported as missing when it is not there.
    const Value::Member* require(std::string_view key, std::string hint);
    // A nested mapping; an absent one reads as empty.
    [[nodiscard]] MapReader section(std::string_view key);
    [[nodiscard]] bool has(std::string_view key) { return member(key) != nullptr; }

    bool duration(std::string_view key, Duration& out, Range<Duration> range);
    // A duration or the word forever, which is no duration.
    bool duration_or_forever(
        std::string_view key, std::optional<Duration>& out, Range<Duration> range
    );
    bool size(std::string_view key, std::size_t& out, Range<std::size_t> range);
    bool integer(std::string_view key, int& out, Range<int> range);
    bool number(std::string_view key, double& out, Range<double> range);
    bool boolean(std::string_view key, bool& out);
    bool rate(std::string_view key, std::optional<double>& out);
    bool string(std::string_view key, std::string& out);
    bool string(std::string_view key, std::optional<std::string>& out);
    bool strings(std::string_view key, std::vector<std::string>& out);
    bool choice(
        std::string_view key, std::string& out, std::initializer_list<std::string_view> names
    );
    // Texts may hold templates; numbers and bools are taken by their text.
    bool text(std::string_view key, Text& out);
    bool text(std::string_view key, std::optional<Text>& out);
    bool texts(std::string_view key, std::vector<Text>& out);
    bool text_map(std::string_view key, std::vector<std::pair<Text, Text>>& out);
    // A part that tools/ compiles.
    bool free(std::string_view key, std::optional<Value>& out);
    bool free_mapping(std::string_view key, std::optional<Value>& out);

    // Known, but of no use here: refused with the reason instead of as unknown.
    void refuse(std::string_view key, std::string_view why, std::string_view instead);
    // Known elsewhere: so that a misplaced key gets the better answer.
    void know(std::initializer_list<std::string_view> keys);

    void error(const Value& at, std::string_view key, std::string_view what, std::string hint);
    void finish();

 private:
    [[nodiscard]] std::string name(std::string_view key) const;
    const Value* scalar(std::string_view key);
    bool read_duration(std::string_view key, Duration& out, Range<Duration> range);
    [[nodiscard]] std::optional<Text> as_text(const Value& value, std::string_view key);
    // For the inventory, when one is made.
    void note(
        std::string_view key,
        std::string_view type,
        std::string min = {},
        std::string max = {},
        std::vector<std::string> names = {}
    ) const;

    const Value* mapping_ = nullptr;  // null: absent or no mapping
    bool broken_ = false;             // no mapping: reported, nothing in it is missed
    Mark key_mark_;
    std::string path_;
    Diagnostics& diagnostics_;
    std::vector<std::string> known_;
    std::vector<std::string> refused_;
};

// A scalar for a message: as the file has it, quoted, shortened, never a secret.
[[nodiscard]] std::string shown(const Value& value);

// A scalar as text with its place.
[[nodiscard]] Text to_text_value(const Value& value);

}  // namespace config
