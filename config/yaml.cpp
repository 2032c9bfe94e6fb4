#include "config/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "config/scalar.hpp"
#include "config/utf8.hpp"

namespace config {
namespace {

constexpr std::size_t kMaxDepth = 100;
constexpr std::size_t kMaxWeight = 500'000;  // values and 64-byte pieces of text, aliases copied

// Ends the reading at once: what follows could not be understood.
struct Stop {
    Mark mark;
    std::string message;
    std::string hint;
};

// Of the escapes "\N" (next line) and "\_" (no-break space) yaml-cpp makes one byte each, which is
// no UTF-8. The file itself was: a lone byte is one of theirs, and its own code point.
std::string whole_characters(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const auto length = utf8_sequence(text, i);
        if (length == 0) out += '\xc2';
        out.append(text, i, std::max<std::size_t>(length, 1));
        i += std::max<std::size_t>(length, 1);
    }
    return out;
}

struct Measure {
    std::size_t weight = 1;
    std::size_t depth = 1;
};

Measure measure(const Value& value) {
    Measure total{1 + value.text.size() / 64, 1};
    auto add = [&](const Value& child) {
        const auto m = measure(child);
        total.weight += m.weight;
        total.depth = std::max(total.depth, m.depth + 1);
    };
    for (const auto& item : value.items) add(item);
    for (const auto& member : value.members) add(member.value);
    return total;
}

class TreeBuilder : public YAML::EventHandler {
 public:
    TreeBuilder(std::shared_ptr<const std::string> file, Diagnostics& diagnostics)
        : file_(std::move(file)), diagnostics_(diagnostics) {}

    Value take_root() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (documents_++ > 0) {
            throw Stop{
                at(mark), "a second YAML document", "one file is one document: remove the ---"
            };
        }
        root_.mark = at(mark);
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        Value value;
        value.mark = at(mark);
        if (!frames_.empty() && frames_.back().key) {
            // An empty value has the mark of whatever comes next: its key is the better place.
            const auto& key = frames_.back().key->mark;
            if (key.line != value.mark.line) value.mark = key;
        }
        add(std::move(value), anchor);
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const auto found = anchors_.find(anchor);
        if (found == anchors_.end()) {
            throw Stop{
                at(mark), "an alias inside what it stands for", "aliases cannot be recursive"
            };
        }
        const auto m = measure(found->second);
        weight_ += m.weight;
        check_bounds(at(mark), m.depth);
        add(found->second, 0);
    }

    void OnScalar(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        const std::string& text
    ) override {
        Value value;
        value.kind = Value::Kind::string;
        value.text = whole_characters(text);
        value.mark = at(mark);
        weight_ += 1 + text.size() / 64;
        check_bounds(value.mark, 0);
        if (text.find('\0') != std::string::npos) {
            diagnostics_.error(
                value.mark, "a NUL character", "remove it: no text here may hold one"
            );
            value.text.clear();
            value.unresolved = true;
        }
        const bool plain = tag.empty() || tag == "?";
        if (!plain && tag != "!" && tag != "tag:yaml.org,2002:str") {
            unknown_tag(value.mark, tag);
            value.unresolved = true;
        }
        if (!expects_key() && plain) {
            value.plain = text.find("${") != std::string::npos;
            type_plain_scalar(value, diagnostics_);
        }
        add(std::move(value), anchor);
    }

    void OnSequenceStart(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        YAML::EmitterStyle::value
    ) override {
        start(mark, tag, anchor, Value::Kind::sequence);
    }
    void OnSequenceEnd() override { end(); }

    void OnMapStart(
        const YAML::Mark& mark,
        const std::string& tag,
        YAML::anchor_t anchor,
        YAML::EmitterStyle::value
    ) override {
        start(mark, tag, anchor, Value::Kind::mapping);
    }
    void OnMapEnd() override { end(); }

 private:
    struct Key {
        std::string text;
        Mark mark;
    };
    struct Frame {
        Value value;
        YAML::anchor_t anchor = 0;
        std::optional<Key> key;  // of a mapping: read, its value is next
        std::unordered_map<std::string, Mark> seen;
    };

    [[nodiscard]] Mark at(const YAML::Mark& mark) const {
        return {file_, mark.line + 1, mark.column + 1};
    }

    [[nodiscard]] bool expects_key() const {
        return !frames_.empty() && frames_.back().value.is(Value::Kind::mapping) &&
               !frames_.back().key;
    }

    void check_bounds(const Mark& mark, std::size_t depth) const {
        if (frames_.size() + depth > kMaxDepth) {
            throw Stop{mark, fmt::format("nested deeper than {} levels", kMaxDepth), {}};
        }
        if (weight_ > kMaxWeight) {
            throw Stop{mark, "too large a configuration", "do aliases multiply each other?"};
        }
    }

    void unknown_tag(const Mark& mark, const std::string& tag) {
        diagnostics_.error(mark, fmt::format("the tag {} means nothing here", tag), "remove it");
    }

    void start(
        const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Value::Kind kind
    ) {
        if (expects_key()) {
            throw Stop{
                at(mark), "a list or mapping as a key", "quote a text that starts with { or ["
            };
        }
        if (!tag.empty() && tag != "?" && tag != "!") unknown_tag(at(mark), tag);
        ++weight_;
        Frame frame;
        frame.value.kind = kind;
        frame.value.mark = at(mark);
        frame.anchor = anchor;
        frames_.push_back(std::move(frame));
        check_bounds(at(mark), 0);
    }

    void end() {
        auto frame = std::move(frames_.back());
        frames_.pop_back();
        add(std::move(frame.value), frame.anchor);
    }

    void add(Value value, YAML::anchor_t anchor) {
        if (anchor != 0) anchors_[anchor] = value;
        if (frames_.empty()) {
            root_ = std::move(value);
            return;
        }
        auto& frame = frames_.back();
        if (frame.value.is(Value::Kind::sequence)) {
            frame.value.items.push_back(std::move(value));
        } else if (!frame.key) {
            frame.key = read_key(value);
        } else {
            auto key = std::move(*frame.key);
            frame.key.reset();
            add_member(frame, std::move(key), std::move(value));
        }
    }

    Key read_key(const Value& value) {
        if (value.is(Value::Kind::sequence) || value.is(Value::Kind::mapping)) {
            throw Stop{value.mark, "a list or mapping as a key", "a key is a word"};
        }
        if (value.is(Value::Kind::null)) {
            diagnostics_.error(value.mark, "an empty key", "quote it if the word null is meant");
        }
        return {value.text, value.mark};
    }

    void add_member(Frame& frame, Key key, Value value) {
        if (key.text == "<<") {
            diagnostics_.error(
                key.mark,
                "merge keys (<<) are not part of YAML 1.2",
                "write the members out; what all tools share goes under defaults:"
            );
            return;
        }
        const auto [first, fresh] = frame.seen.emplace(key.text, key.mark);
        if (!fresh) {
            diagnostics_.error(
                key.mark,
                fmt::format("duplicate key {}", key.text),
                fmt::format("it is given at line {} already: remove one", first->second.line)
            );
            return;
        }
        frame.value.members.push_back({std::move(key.text), std::move(key.mark), std::move(value)});
    }

    std::shared_ptr<const std::string> file_;
    Diagnostics& diagnostics_;
    Value root_;
    std::vector<Frame> frames_;
    std::map<YAML::anchor_t, Value> anchors_;
    std::size_t weight_ = 0;
    int documents_ = 0;
};

// Place of the first byte that is no UTF-8; empty when all is well.
std::optional<Mark> broken_utf8(std::shared_ptr<const std::string> file, const std::string& text) {
    Mark mark{std::move(file), 1, 1};
    for (std::size_t i = 0; i < text.size();) {
        const auto length = utf8_sequence(text, i);
        // A NUL is UTF-8 but no text; yaml-cpp would take the file for UTF-16 or UTF-32.
        if (length == 0 || text[i] == '\0') return mark;
        ++mark.column;
        if (text[i] == '\n') {
            ++mark.line;
            mark.column = 1;
        }
        i += length;
    }
    return std::nullopt;
}

}  // namespace

std::optional<Value> parse_yaml(
    std::shared_ptr<const std::string> file, const std::string& text, Diagnostics& diagnostics
) {
    if (auto mark = broken_utf8(file, text)) {
        diagnostics.error(*mark, "this is not UTF-8", "save the file as UTF-8");
        return std::nullopt;
    }
    TreeBuilder builder(file, diagnostics);
    try {
        std::istringstream in(text);
        YAML::Parser parser(in);
        while (parser.HandleNextDocument(builder)) {
        }
    } catch (const Stop& stop) {
        diagnostics.error(stop.mark, stop.message, stop.hint);
        return std::nullopt;
    } catch (const YAML::Exception& e) {
        const Mark mark{file, e.mark.line + 1, e.mark.column + 1};
        // The versions of yaml-cpp word this one differently.
        if (e.msg.rfind("the referenced anchor is not defined", 0) == 0) {
            diagnostics.error(
                mark, "an alias without its anchor", "write &name where it is defined, above"
            );
        } else {
            diagnostics.error(
                mark,
                fmt::format("not YAML: {}", readable(e.msg)),
                "often an indent, a missing colon or a quote above this line"
            );
        }
        return std::nullopt;
    }
    auto root = builder.take_root();
    if (root.mark.line == 0) root.mark = Mark{file, 1, 1};
    return root;
}

}  // namespace config
