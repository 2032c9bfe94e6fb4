#include "tools/multipart.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "config/nearest.hpp"
#include "outbox/sha256.hpp"
#include "tools/encoding.hpp"

namespace tools {
namespace {

using Kind = config::Value::Kind;

bool is_scalar(const config::Value& value) {
    return value.is(Kind::string) || value.is(Kind::number) || value.is(Kind::boolean);
}

Template scalar(const config::Value& value, CompileContext& context) {
    if (value.is(Kind::string)) return Template::compile({value.text, value.mark}, context);
    return Template::literal(value.text);
}

// Of a name in quotes, as the HTML standard has it.
std::string quoted_parameter(std::string_view name) {
    std::string out = "\"";
    for (const char c : name) {
        switch (c) {
            case '"':
                out += "%22";
                break;
            case '\r':
                out += "%0D";
                break;
            case '\n':
                out += "%0A";
                break;
            default:
                out += c;
        }
    }
    return out += '"';
}

// A line end becomes %0A and stays on its line; every other control has no business in a name.
bool is_name(std::string_view name) {
    return std::none_of(name.begin(), name.end(), [](char c) {
        return c != '\r' && c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f);
    });
}

// What a careless receiver could take for a path.
bool is_filename(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && is_name(name) &&
           name.find_first_of("/\\") == std::string_view::npos;
}

bool holds(const std::vector<MultipartPart>& parts, const std::string& boundary) {
    return std::any_of(parts.begin(), parts.end(), [&](const MultipartPart& part) {
        return part.content.find(boundary) != std::string::npos ||
               part.name.find(boundary) != std::string::npos ||
               (part.filename && part.filename->find(boundary) != std::string::npos);
    });
}

std::string boundary_of(const std::vector<MultipartPart>& parts) {
    std::string digests;
    for (const auto& part : parts) {
        digests += outbox::sha256_hex(part.name) + outbox::sha256_hex(part.filename.value_or("")) +
                   outbox::sha256_hex(part.content);
    }
    constexpr std::size_t kDigits = 40;
    for (int round = 0;; ++round) {
        const auto hash = outbox::to_hex(outbox::sha256({digests, std::to_string(round)}));
        auto boundary = "outboxd-" + hash.substr(0, kDigits);
        if (!holds(parts, boundary)) return boundary;
    }
}

}  // namespace

MultipartBody multipart_encode(const std::vector<MultipartPart>& parts) {
    const auto boundary = boundary_of(parts);
    MultipartBody body;
    body.content_type = "multipart/form-data; boundary=" + boundary;
    auto& text = body.text;
    for (const auto& part : parts) {
        text += "--" + boundary +
                "\r\nContent-Disposition: form-data; name=" + quoted_parameter(part.name);
        if (part.filename) text += "; filename=" + quoted_parameter(*part.filename);
        text += "\r\n";
        if (!part.content_type.empty()) text += "Content-Type: " + part.content_type + "\r\n";
        text += "\r\n";
        text += part.content;
        text += "\r\n";
    }
    text += "--" + boundary + "--\r\n";
    return body;
}

MultipartTemplate MultipartTemplate::compile(const config::Value& value, CompileContext& context) {
    MultipartTemplate result;
    if (!value.is(Kind::mapping)) return result;  // reported by the reader
    for (const auto& member : value.members) {
        if (member.key.find("{{") != std::string::npos) {
            context.diagnostics.error(
                member.key_mark,
                "a template cannot be the name of a part",
                "names are fixed by the file"
            );
        }
        if (!is_name(member.key) || member.key.empty()) {
            context.diagnostics.error(
                member.key_mark, "the name of a part is empty or holds a control character"
            );
        }
        if (member.value.is(Kind::mapping)) {
            result.compile_file(member, context);
        } else {
            result.compile_field(member, context);
        }
    }
    if (result.parts_.empty()) {
        context.diagnostics.error(value.mark, "multipart needs a part", "write { name: value }");
    }
    return result;
}

void MultipartTemplate::compile_field(
    const config::Value::Member& member, CompileContext& context
) {
    const auto& value = member.value;
    std::vector<const config::Value*> items;
    if (value.is(Kind::sequence)) {
        for (const auto& item : value.items) items.push_back(&item);
    } else {
        items.push_back(&value);
    }
    for (const auto* item : items) {
        if (!is_scalar(*item)) {
            context.diagnostics.error(
                item->mark,
                "a part must be a text, a number, a boolean, or a file",
                "a list of texts repeats the part; a file: { filename: a.txt, text: \"…\" }"
            );
            continue;
        }
        Part part;
        part.name = member.key;
        part.text = scalar(*item, context);
        parts_.push_back(std::move(part));
    }
}

void MultipartTemplate::compile_file(const config::Value::Member& member, CompileContext& context) {
    static const std::vector<std::string> kKeys = {
        "filename", "content_type", "text", "json", "base64"
    };
    Part part;
    part.name = member.key;
    int contents = 0;
    for (const auto& [key, mark, value] : member.value.members) {
        if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
            context.diagnostics.error(
                mark, "unknown key " + key + " of a part", config::nearest_hint(key, kKeys)
            );
            continue;
        }
        if (key != "json" && !is_scalar(value)) {
            context.diagnostics.error(value.mark, key + " of a part must be a text");
            continue;
        }
        if (key == "filename") {
            part.filename = scalar(value, context);
        } else if (key == "content_type") {
            part.content_type = scalar(value, context);
        } else if (key == "json") {
            part.kind = Part::Content::json;
            part.json = ValueTemplate::compile(value, context);
            ++contents;
        } else {
            const bool base64 = key == "base64";
            part.kind = base64 ? Part::Content::base64 : Part::Content::text;
            // A file's text has a syntax of its own: its templates name their escaping.
            part.text = base64 || !value.is(Kind::string)
                            ? scalar(value, context)
                            : Template::compile_escaped({value.text, value.mark}, context);
            ++contents;
        }
    }
    if (contents != 1) {
        context.diagnostics.error(
            member.key_mark,
            "the part " + member.key + " needs exactly one of text, json and base64",
            "text: \"{{ arguments.csv | raw }}\""
        );
    }
    parts_.push_back(std::move(part));
}

Rendered<std::optional<std::string>> MultipartTemplate::render_content(
    const Part& part, const Scope& scope
) {
    using Text = std::optional<std::string>;
    switch (part.kind) {
        case Part::Content::field:
            return part.text.render_text(scope);
        case Part::Content::text: {
            auto text = part.text.render_body(scope);
            if (!text.ok()) return text.error();
            return Text(std::move(text.value()));
        }
        case Part::Content::json: {
            auto value = part.json.render(scope);
            if (!value.ok()) return value.error();
            if (!value.value()) return Text();
            return Text(outbox::to_text(*value.value()));
        }
        case Part::Content::base64: {
            auto text = part.text.render_text(scope);
            if (!text.ok() || !text.value()) return text;
            auto bytes = base64_decode(*text.value());
            if (!bytes) return invalid_argument("the part " + part.name + " is no base64");
            return Text(std::move(*bytes));
        }
    }
    return Text();
}

Rendered<std::optional<MultipartPart>> MultipartTemplate::render_part(
    const Part& part, const Scope& scope
) {
    MultipartPart out;
    out.name = part.name;
    auto content = render_content(part, scope);
    if (!content.ok()) return content.error();
    if (!content.value()) return std::optional<MultipartPart>();
    out.content = std::move(*content.value());
    if (part.filename) {
        auto name = part.filename->render_text(scope);
        if (!name.ok()) return name.error();
        if (name.value() && !is_filename(*name.value())) {
            return invalid_argument(
                "the file name of part " + part.name +
                " is empty, a path, or holds a control character"
            );
        }
        out.filename = std::move(name.value());
    }
    if (part.kind == Part::Content::json) out.content_type = "application/json";
    if (part.kind == Part::Content::text) out.content_type = "text/plain; charset=utf-8";
    if (part.kind == Part::Content::base64) out.content_type = "application/octet-stream";
    if (part.content_type) {
        auto type = part.content_type->render_text(scope);
        if (!type.ok()) return type.error();
        if (type.value() && has_control(*type.value())) {
            return invalid_argument(
                "the content_type of part " + part.name + " would hold a control character"
            );
        }
        if (type.value()) out.content_type = std::move(*type.value());
    }
    return std::optional<MultipartPart>(std::move(out));
}

Rendered<MultipartBody> MultipartTemplate::render(const Scope& scope) const {
    std::vector<MultipartPart> parts;
    for (const auto& part : parts_) {
        auto rendered = render_part(part, scope);
        if (!rendered.ok()) return rendered.error();
        if (rendered.value()) parts.push_back(std::move(*rendered.value()));
    }
    if (parts.empty()) return missing_argument("every part of the multipart body is missing");
    return multipart_encode(parts);
}

}  // namespace tools
