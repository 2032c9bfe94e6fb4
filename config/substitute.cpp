#include "config/substitute.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

namespace config {
namespace {

constexpr std::size_t kMaxSecretBytes = 1024 * 1024;

bool is_variable_name(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    for (const char c : name) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(c >= '0' && c <= '9')) return false;
    }
    return true;
}

// One scalar: scanned from left to right, what was inserted is remembered and not scanned.
class Substitution {
 public:
    Substitution(Value& value, const std::string& folder, Diagnostics& diagnostics)
        : value_(value), folder_(folder), diagnostics_(diagnostics) {}

    void run() {
        if (value_.text.find("${") == std::string::npos) return;
        const std::string text = value_.text;
        std::size_t at = 0;
        while (at < text.size() && !failed_) at = step(text, at);
        if (!failed_) check_templates();
        value_.source = text;
        value_.text = failed_ ? std::string() : out_;
        value_.unresolved = failed_;
        // Only a lone substitution may stand for a number or a bool.
        const std::pair<std::size_t, std::size_t> whole{0, out_.size()};
        value_.plain = value_.plain && !failed_ && inserted_.size() == 1 && inserted_[0] == whole;
    }

 private:
    std::size_t step(const std::string& text, std::size_t at) {
        if (text.compare(at, 3, "$${") == 0) {
            out_ += "${";
            return at + 3;
        }
        if (text.compare(at, 2, "${") == 0) return expression(text, at);
        if (text.compare(at, 2, "{{") == 0 || text.compare(at, 2, "}}") == 0) {
            in_template_ = text[at] == '{';
            out_.append(text, at, 2);
            return at + 2;
        }
        out_ += text[at];
        return at + 1;
    }

    std::size_t expression(const std::string& text, std::size_t at) {
        const auto close = text.find('}', at);
        if (close == std::string::npos) {
            fail("${ without a closing }", "write $${ for the two characters themselves");
            return text.size();
        }
        const auto body = text.substr(at + 2, close - at - 2);
        if (body.find("${") != std::string::npos) {
            fail("a substitution inside a substitution", "give one default: ${env:VAR:-default}");
        } else if (in_template_) {
            fail(
                fmt::format("${{{}}} inside a {{{{ template }}}}", body),
                "templates see the operation's data only; put the substitution outside"
            );
        } else {
            insert(body);
        }
        return close + 1;
    }

    void insert(const std::string& body) {
        const auto colon = body.find(':');
        const auto kind = body.substr(0, colon);
        const auto rest = colon == std::string::npos ? std::string() : body.substr(colon + 1);
        std::optional<std::string> found;
        if (kind == "env") {
            found = environment(rest);
        } else if (kind == "file") {
            found = file(rest);
        } else if (kind == "cred") {
            found = credential(rest);
        } else {
            fail(
                fmt::format("unknown substitution ${{{}}}", body),
                "there are ${env:VAR}, ${file:/path} and ${cred:name}; write $${ for the "
                "characters themselves"
            );
        }
        if (!found) return;
        if (found->find('\0') != std::string::npos) {
            fail(fmt::format("${{{}}} holds a NUL character", body), {});
            return;
        }
        inserted_.emplace_back(out_.size(), out_.size() + found->size());
        out_ += *found;
    }

    std::optional<std::string> environment(const std::string& rest) {
        const auto dash = rest.find(":-");
        const auto name = rest.substr(0, dash);
        if (!is_variable_name(name)) {
            fail(
                fmt::format("{} is no name of an environment variable", name),
                "letters, digits and _"
            );
            return std::nullopt;
        }
        const char* found = std::getenv(name.c_str());
        // As in a shell: :- covers both unset and empty.
        if (dash != std::string::npos && (!found || !*found)) return rest.substr(dash + 2);
        if (found) return found;
        fail(
            fmt::format("the environment variable {} is not set", name),
            fmt::format("set it, or give a default: ${{env:{}:-default}}", name)
        );
        return std::nullopt;
    }

    std::optional<std::string> file(const std::string& path) {
        if (path.empty()) {
            fail("${file:} without a path", "write ${file:/path}");
            return std::nullopt;
        }
        value_.from_secret = true;
        auto read = read_secret_file(path[0] == '/' ? path : folder_ + "/" + path);
        if (!read.text) {
            fail(
                fmt::format("cannot read {}: {}", path, read.error),
                "does it exist, and may this user read it?"
            );
        }
        return read.text;
    }

    std::optional<std::string> credential(const std::string& name) {
        if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) {
            fail(
                fmt::format("{} is no name of a credential", name), "a file name, without a folder"
            );
            return std::nullopt;
        }
        value_.from_secret = true;
        const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
        if (!folder || !*folder) {
            fail(
                fmt::format("no credential {}: CREDENTIALS_DIRECTORY is not set", name),
                fmt::format(
                    "systemd sets it (LoadCredential={}:/path); elsewhere name a folder that holds "
                    "the file {}",
                    name,
                    name
                )
            );
            return std::nullopt;
        }
        auto read = read_secret_file(fmt::format("{}/{}", folder, name));
        if (!read.text) {
            fail(
                fmt::format("cannot read the credential {}: {}", name, read.error),
                fmt::format(
                    "put LoadCredential={}:/path into the unit, or the file into "
                    "$CREDENTIALS_DIRECTORY",
                    name
                )
            );
        }
        return read.text;
    }

    // No {{ may contain a character that was brought in.
    void check_templates() {
        for (auto at = out_.find("{{"); at != std::string::npos; at = out_.find("{{", at + 1)) {
            for (const auto& [first, last] : inserted_) {
                if (at < last && at + 2 > first) {
                    fail(
                        "a substituted value makes a {{ template }}",
                        "values from outside are data: write templates in this file"
                    );
                    return;
                }
            }
        }
    }

    void fail(std::string message, std::string hint) {
        if (!failed_) diagnostics_.error(value_.mark, std::move(message), std::move(hint));
        failed_ = true;
    }

    Value& value_;
    const std::string& folder_;
    Diagnostics& diagnostics_;
    std::string out_;
    std::vector<std::pair<std::size_t, std::size_t>> inserted_;
    bool in_template_ = false;
    bool failed_ = false;
};

}  // namespace

FileText read_secret_file(const std::string& path) {
    errno = 0;
    std::ifstream in(path, std::ios::binary);
    if (!in) return {std::nullopt, std::strerror(errno != 0 ? errno : EIO)};
    std::string text(kMaxSecretBytes + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad()) return {std::nullopt, std::strerror(errno != 0 ? errno : EISDIR)};
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMaxSecretBytes) return {std::nullopt, "larger than 1MiB"};
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return {std::move(text), {}};
}

void substitute(Value& tree, const std::string& folder, Diagnostics& diagnostics) {
    if (tree.is(Value::Kind::string)) Substitution(tree, folder, diagnostics).run();
    for (auto& item : tree.items) substitute(item, folder, diagnostics);
    for (auto& member : tree.members) {
        for (const auto* kind : {"${env:", "${file:", "${cred:"}) {
            if (member.key.find(kind) == std::string::npos) continue;
            diagnostics.error(
                member.key_mark, "a substitution in a key", "only values are substituted"
            );
        }
        substitute(member.value, folder, diagnostics);
    }
}

}  // namespace config
