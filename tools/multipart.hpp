#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/value.hpp"
#include "tools/rendered.hpp"
#include "tools/template.hpp"
#include "tools/value_template.hpp"

namespace tools {

// One part of a multipart/form-data body, rendered.
struct MultipartPart {
    std::string name;
    std::optional<std::string> filename;
    std::string content_type;  // empty: none is said
    std::string content;
};

struct MultipartBody {
    std::string content_type;  // with the boundary
    std::string text;
};

// RFC 7578. Names and file names are written as browsers do (%22, %0D, %0A); the boundary is a hash
// of the parts, so the same operation gives the same bytes with every attempt, and is in no part.
[[nodiscard]] MultipartBody multipart_encode(const std::vector<MultipartPart>& parts);

// `multipart:` of a request: names to texts, lists of them (the field repeats), or files
// ({ filename, content_type, and one of text, json, base64 }). Names are fixed by the file.
class MultipartTemplate {
 public:
    static MultipartTemplate compile(const config::Value& value, CompileContext& context);

    // Optional values that are missing leave their part out.
    [[nodiscard]] Rendered<MultipartBody> render(const Scope& scope) const;

 private:
    struct Part {
        std::string name;
        std::optional<Template> filename;
        std::optional<Template> content_type;
        enum class Content { field, text, json, base64 } kind = Content::field;
        Template text;  // field, text, base64
        ValueTemplate json;
    };
    void compile_field(const config::Value::Member& member, CompileContext& context);
    void compile_file(const config::Value::Member& member, CompileContext& context);
    static Rendered<std::optional<MultipartPart>> render_part(const Part& part, const Scope& scope);
    static Rendered<std::optional<std::string>> render_content(
        const Part& part, const Scope& scope
    );

    std::vector<Part> parts_;
};

}  // namespace tools
