#include "tools/arguments_schema.hpp"

#include <algorithm>
#include <new>
#include <set>
#include <utility>
#include <valijson/constraint_builder.hpp>
#include <valijson/constraints/concrete_constraints.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "outbox/utf8.hpp"
#include "tools/schema_adapter.hpp"
#include "tools/schema_compiler.hpp"

namespace tools {
namespace {

using valijson::ValidationResults;
using valijson::constraints::Constraint;

constexpr std::size_t kMaxPlaces = 3;
constexpr std::size_t kMaxPlace = 160;

// A LeafCheck as the library's own kind of constraint.
class LeafConstraint final : public valijson::constraints::PolyConstraint {
 public:
    explicit LeafConstraint(const LeafCheck& check) : check_(&check) {}

    bool validate(
        const valijson::adapters::Adapter& target,
        const std::vector<std::string>& context,
        ValidationResults* results
    ) const override {
        const auto* value = dynamic_cast<const schema::Adapter*>(&target);
        // Names of members (propertyNames) come as the library's own texts.
        const auto complaint = value != nullptr ? check_->check(value->json())
                                                : check_->check(outbox::Json(target.asString()));
        if (complaint && results != nullptr) results->pushError(context, *complaint);
        return !complaint;
    }

 private:
    Constraint* cloneInto(void* place) const override { return new (place) LeafConstraint(*this); }
    [[nodiscard]] std::size_t sizeOf() const override { return sizeof(LeafConstraint); }

    const LeafCheck* check_;
};

class LeafBuilder final : public valijson::ConstraintBuilder {
 public:
    explicit LeafBuilder(const std::vector<LeafCheck>& checks) : checks_(checks) {}
    [[nodiscard]] Constraint* make(const valijson::adapters::Adapter& index) const override {
        return new LeafConstraint(checks_.at(static_cast<std::size_t>(index.asInteger())));
    }

 private:
    const std::vector<LeafCheck>& checks_;
};

// ["<root>", "[lines]", "[0]"] → /lines/0
std::string pointer_of(const std::vector<std::string>& context) {
    std::string pointer;
    for (std::size_t i = 1; i < context.size() && pointer.size() < kMaxPlace; ++i) {
        pointer += '/';
        for (const char c : context[i].substr(1, context[i].size() - 2)) {
            pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
            if (pointer.size() >= kMaxPlace) break;
        }
    }
    if (pointer.size() < kMaxPlace) return pointer;
    return outbox::repair_utf8(outbox::utf8_head(pointer, kMaxPlace)) + "…";
}

// Above each violation the library reports everything that holds it, up to the top.
bool is_wrapping(const ValidationResults::Error& error) {
    return error.description.starts_with("Failed to validate");
}

std::string described(const ValidationResults& results) {
    const bool only_wrapping = std::all_of(results.begin(), results.end(), is_wrapping);
    std::string text = "The arguments do not fit the tool's schema: ";
    std::set<std::string> said;
    for (const auto& error : results) {
        if (said.size() == kMaxPlaces) break;
        if (!only_wrapping && is_wrapping(error)) continue;
        auto description = error.description;
        while (!description.empty() && description.back() == '.') description.pop_back();
        description = std::string(outbox::utf8_head(description, kMaxPlace));
        auto place = "at \"" + pointer_of(error.context) + "\": " + description;
        if (said.contains(place)) continue;
        text += said.empty() ? place : "; " + place;
        said.insert(std::move(place));
    }
    return std::string(outbox::utf8_head(text, ArgumentsSchema::kMaxMessage - 1)) + ".";
}

}  // namespace

struct ArgumentsSchema::Compiled {
    std::vector<LeafCheck> leaves;
    valijson::Schema schema;
};

ArgumentsSchema::ArgumentsSchema(std::unique_ptr<Compiled> compiled)
    : compiled_(std::move(compiled)) {}
ArgumentsSchema::~ArgumentsSchema() = default;

std::unique_ptr<ArgumentsSchema> ArgumentsSchema::compile(
    const config::Value& schema, config::Diagnostics& diagnostics
) {
    auto flat = compile_schema(schema, diagnostics);
    if (!flat) return nullptr;
    auto compiled = std::make_unique<Compiled>();
    compiled->leaves = std::move(flat->leaves);
    try {
        valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
        auto builder = std::make_unique<LeafBuilder>(compiled->leaves);
        parser.addConstraintBuilder(kLeafKeyword, builder.get());
        (void)builder.release();  // the parser's now
        parser.populateSchema(schema::Adapter(flat->document), compiled->schema);
    } catch (const std::exception& error) {  // the compiler above should have found it
        diagnostics.error(
            schema.mark, std::string("arguments: the schema cannot be used: ") + error.what()
        );
        return nullptr;
    }
    return std::unique_ptr<ArgumentsSchema>(new ArgumentsSchema(std::move(compiled)));
}

std::optional<std::string> ArgumentsSchema::violation(const outbox::Json& arguments) const {
    const schema::Adapter target(arguments);
    valijson::Validator validator;
    ValidationResults results;
    try {
        // Without results the library stops at the first violation; most arguments fit.
        const SchemaWork work;
        if (validator.validate(compiled_->schema, target, nullptr)) return std::nullopt;
    } catch (const SchemaWork::Exceeded& limit) {
        return std::string("The arguments cannot be checked against the tool's schema: ") +
               limit.what() + ".";
    }
    try {
        const SchemaWork work;
        validator.validate(compiled_->schema, target, &results);
    } catch (const SchemaWork::Exceeded&) {
        // What was found until then is enough to say.
    }
    if (results.numErrors() == 0) return "The arguments do not fit the tool's schema.";
    return described(results);
}

}  // namespace tools
