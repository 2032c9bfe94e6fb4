#include "config/source.hpp"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "config/substitute.hpp"
#include "config/yaml.hpp"

namespace config {
namespace {

constexpr std::size_t kMaxFileBytes = 4 * 1024 * 1024;

std::string folder_of(const std::string& file) {
    const auto slash = file.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : file.substr(0, slash);
}

std::optional<std::string> read_file(
    const std::string& path, const Mark& mark, Diagnostics& diagnostics
) {
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    std::string text(kMaxFileBytes + 1, '\0');
    if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (!in.is_open() || in.bad()) {
        diagnostics.error(
            mark,
            fmt::format("cannot read {}: {}", path, std::strerror(errno != 0 ? errno : EISDIR)),
            "does it exist, and may this user read it?"
        );
        return std::nullopt;
    }
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxFileBytes) {
        diagnostics.error(
            mark, fmt::format("{} is larger than 4MiB", path), "split it: include: [tools.d/*.yaml]"
        );
        return std::nullopt;
    }
    return text;
}

std::optional<Value> read_one(const std::string& path, const Mark& mark, Diagnostics& diagnostics) {
    auto text = read_file(path, mark, diagnostics);
    if (!text) return std::nullopt;
    return parse_yaml(std::make_shared<const std::string>(path), *text, diagnostics);
}

// The folder as it is: only what the file says may hold wildcards.
std::string escape_wildcards(const std::string& folder) {
    std::string out;
    for (const char c : folder) {
        if (std::strchr("*?[\\", c)) out += '\\';
        out += c;
    }
    return out;
}

// Names that match, sorted. A pattern without wildcards must exist.
std::vector<std::string> matches(
    const Value& pattern, const std::string& folder, Diagnostics& diagnostics
) {
    const bool absolute = !pattern.text.empty() && pattern.text[0] == '/';
    // Relative to the including file, and named as short as it was: tools.d/desk.yaml.
    const auto full =
        absolute || folder == "." ? pattern.text : escape_wildcards(folder) + "/" + pattern.text;
    glob_t found{};
    const int result = glob(full.c_str(), GLOB_ERR, nullptr, &found);
    std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    globfree(&found);
    if (result == GLOB_NOMATCH && pattern.text.find_first_of("*?[") == std::string::npos) {
        diagnostics.error(
            pattern.mark,
            fmt::format("there is no file {}", full),
            "paths are relative to this file"
        );
    } else if (result == GLOB_NOMATCH) {
        diagnostics.warning(
            pattern.mark, fmt::format("no file matches {}", full), "paths are relative to this file"
        );
    } else if (result != 0) {
        diagnostics.error(
            pattern.mark,
            fmt::format("cannot look for {}", full),
            "does the folder exist, and may this user read it?"
        );
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::string where(const Mark& mark) {
    return fmt::format("{}:{}", mark.file ? *mark.file : std::string(), mark.line);
}

void merge_section(Value::Member& into, Value::Member from, Diagnostics& diagnostics) {
    using Kind = Value::Kind;
    if (into.value.is(Kind::null)) {
        into = std::move(from);
        return;
    }
    if (from.value.is(Kind::null)) return;
    if (!into.value.is(Kind::mapping) || !from.value.is(Kind::mapping)) {
        diagnostics.error(
            from.key_mark,
            fmt::format("duplicate key {}", from.key),
            fmt::format("it is given at {} already", where(into.key_mark))
        );
        return;
    }
    for (auto& member : from.value.members) {
        if (const auto* first = into.value.member(member.key)) {
            diagnostics.error(
                member.key_mark,
                fmt::format("duplicate key {}.{}", from.key, member.key),
                fmt::format("it is given at {} already", where(first->key_mark))
            );
            continue;
        }
        into.value.members.push_back(std::move(member));
    }
}

void merge(Value& root, Value included, Diagnostics& diagnostics) {
    for (auto& member : included.members) {
        if (member.key == "include") {
            diagnostics.error(
                member.key_mark, "an included file cannot include", "name it in the first file"
            );
            continue;
        }
        if (member.key == "version") {  // allowed, so that each file may stand alone
            if (member.value.text != "1") {
                diagnostics.error(member.value.mark, "version must be 1", "write version: 1");
            }
            continue;
        }
        auto same = std::find_if(root.members.begin(), root.members.end(), [&](const auto& m) {
            return m.key == member.key;
        });
        if (same == root.members.end()) {
            root.members.push_back(std::move(member));
        } else {
            merge_section(*same, std::move(member), diagnostics);
        }
    }
}

void drop_dsn(Value& root) {
    for (auto& section : root.members) {
        if (section.key != "database") continue;
        std::erase_if(section.value.members, [](const auto& m) {
            return m.key == "dsn" || m.key == "sources";
        });
    }
}

void include_file(
    Value& root,
    const std::string& path,
    const Mark& mark,
    const LoadOptions& options,
    Diagnostics& diagnostics
) {
    auto tree = read_one(path, mark, diagnostics);
    if (!tree || tree->is(Value::Kind::null)) return;
    if (!tree->is(Value::Kind::mapping)) {
        diagnostics.error(
            tree->mark, "an included file must be a mapping", "for example tools: { … }"
        );
        return;
    }
    if (options.database_elsewhere) drop_dsn(*tree);
    substitute(*tree, folder_of(path), diagnostics);
    merge(root, std::move(*tree), diagnostics);
}

void include_all(
    Value& root, const std::string& file, const LoadOptions& options, Diagnostics& diagnostics
) {
    const auto* found = root.find("include");
    if (!found) return;
    const Value include = *found;  // merging moves the members about
    if (!include.is(Value::Kind::sequence)) {
        diagnostics.error(
            include.mark, "include must be a list", "write include: [tools.d/*.yaml]"
        );
        return;
    }
    std::vector<std::string> seen{file};
    for (const auto& pattern : include.items) {
        if (pattern.unresolved) continue;
        if (!pattern.is(Value::Kind::string) || pattern.text.empty()) {
            diagnostics.error(
                pattern.mark,
                "include must be a list of file names",
                "write include: [tools.d/*.yaml]"
            );
            continue;
        }
        for (const auto& path : matches(pattern, folder_of(file), diagnostics)) {
            if (std::find(seen.begin(), seen.end(), path) != seen.end()) continue;
            seen.push_back(path);
            include_file(root, path, pattern.mark, options, diagnostics);
        }
    }
}

}  // namespace

std::optional<Value> read_tree(
    const std::string& file, const LoadOptions& options, Diagnostics& diagnostics
) {
    const Mark top{std::make_shared<const std::string>(file), 0, 0};
    auto root = read_one(file, top, diagnostics);
    if (!root) return std::nullopt;
    if (!root->is(Value::Kind::mapping)) {
        const bool empty = root->is(Value::Kind::null);
        diagnostics.error(
            root->mark,
            empty ? "the file is empty" : "a configuration must be a mapping",
            "begin with version: 1"
        );
        return std::nullopt;
    }
    if (options.database_elsewhere) drop_dsn(*root);
    substitute(*root, folder_of(file), diagnostics);
    include_all(*root, file, options, diagnostics);
    return root;
}

}  // namespace config
