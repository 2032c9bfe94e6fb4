#include "tools/command_template.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "outbox/traceparent.hpp"

namespace tools {
namespace {

constexpr std::string_view kOwnPrefix = "OUTBOX_";

bool is_variable_name(std::string_view name) {
    const auto letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    return !name.empty() && letter(name.front()) &&
           std::all_of(name.begin(), name.end(), [&](char c) {
               return letter(c) || (c >= '0' && c <= '9');
           });
}

// The text behind `sh -c` is a program: a template in it would be run, not passed.
bool is_shell_script(const config::Command& command, std::size_t item) {
    constexpr std::array<std::string_view, 6> kShells = {
        "sh", "bash", "dash", "zsh", "ksh", "busybox"
    };
    if (item == 0) return false;
    const std::string_view program = command.argv[0].value;
    const auto name = program.substr(program.rfind('/') + 1);
    const auto& before = command.argv[item - 1].value;
    return std::find(kShells.begin(), kShells.end(), name) != kShells.end() && before.size() >= 2 &&
           before[0] == '-' && before[1] != '-' && before.back() == 'c';
}

const char* search_path() {
    const char* path = std::getenv("PATH");
    return path == nullptr || *path == '\0' ? "/usr/local/bin:/usr/bin:/bin" : path;
}

bool has_nul(const std::string& text) {
    return text.find('\0') != std::string::npos;
}

}  // namespace

CommandTemplate CommandTemplate::compile(const config::Command& command, CompileContext& context) {
    CommandTemplate result;
    result.allow_dash_ = command.allow_dash;
    result.directory_ = command.cwd.value_or("");
    result.compile_argv(command, context);
    result.compile_environment(command, context);
    if (command.stdin_text) {
        result.input_ = Template::compile_escaped(*command.stdin_text, context);
    }
    return result;
}

void CommandTemplate::compile_argv(const config::Command& command, CompileContext& context) {
    auto& diagnostics = context.diagnostics;
    if (command.argv.empty() || command.argv[0].value.empty()) {
        diagnostics.error(
            command.mark, "argv must name a program", "for instance argv: [/usr/bin/notify, --once]"
        );
        return;
    }
    for (std::size_t i = 0; i < command.argv.size(); ++i) {
        const auto& item = command.argv[i];
        auto compiled = Template::compile(item, context);
        if (has_nul(item.value)) diagnostics.error(item.mark, "an argument cannot hold a NUL");
        if (i == 0) {
            program_ = item.value;
            if (compiled.has_expressions()) {
                diagnostics.error(
                    item.mark, "the program is fixed by the file; a template cannot name it"
                );
            }
            continue;
        }
        if (compiled.has_expressions() && is_shell_script(command, i)) {
            diagnostics.warning(
                item.mark,
                "a template inside a shell script is run by the shell",
                "pass it as an argument of its own and use \"$1\" in the script"
            );
        }
        arguments_.push_back(std::move(compiled));
    }
}

void CommandTemplate::compile_environment(const config::Command& command, CompileContext& context) {
    for (const auto& [name, value] : command.env) {
        if (!is_variable_name(name.value)) {
            context.diagnostics.error(name.mark, "\"" + name.value + "\" is no name of a variable");
        }
        if (name.value.rfind(kOwnPrefix, 0) == 0) {
            context.diagnostics.error(
                name.mark,
                name.value + ": the names OUTBOX_… are set by outboxd itself",
                "OUTBOX_OPERATION_ID, OUTBOX_KEY and OUTBOX_ATTEMPT are always there"
            );
        }
        environment_.emplace_back(name.value, Template::compile(value, context));
    }
}

Rendered<ProcessSpec> CommandTemplate::render(const Scope& scope) const {
    ProcessSpec spec;
    spec.directory = directory_;
    spec.argv.push_back(program_);
    for (const auto& argument : arguments_) {
        auto text = argument.render_text(scope);
        if (!text.ok()) return text.error();
        if (!text.value()) continue;
        auto& item = *text.value();
        if (has_nul(item)) return invalid_argument("an argument of the command would hold a NUL");
        if (!allow_dash_ && argument.starts_with_expression() && !item.empty() && item[0] == '-') {
            return invalid_argument(
                "an argument of the command would start with \"-\", as an option does"
            );
        }
        spec.argv.push_back(std::move(item));
    }
    bool own_path = false;
    bool own_trace = false;
    for (const auto& [name, value] : environment_) {
        auto text = value.render_text(scope);
        if (!text.ok()) return text.error();
        if (!text.value()) continue;
        if (has_nul(*text.value()))
            return invalid_argument("the variable " + name + " would hold a NUL");
        own_path = own_path || name == "PATH";
        own_trace = own_trace || name == "TRACEPARENT";
        spec.environment.push_back(name + "=" + *text.value());
    }
    if (!own_path) spec.environment.push_back(std::string("PATH=") + search_path());
    spec.environment.push_back("OUTBOX_OPERATION_ID=" + scope.call.intent.id.value);
    spec.environment.push_back("OUTBOX_KEY=" + scope.call.provider_key);
    spec.environment.push_back("OUTBOX_ATTEMPT=" + std::to_string(scope.call.attempt));
    if (const auto& trace = scope.call.intent.traceparent; trace && !own_trace) {
        spec.environment.push_back("TRACEPARENT=" + outbox::child_traceparent(*trace));
    }
    if (input_) {
        auto input = input_->render_body(scope);
        if (!input.ok()) return input.error();
        spec.input = std::move(input.value());
    }
    return spec;
}

}  // namespace tools
