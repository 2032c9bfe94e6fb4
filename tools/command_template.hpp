#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "tools/child_process.hpp"
#include "tools/template.hpp"

namespace tools {

// A command of the configuration, compiled: a list of arguments for execve, never a shell's text.
class CommandTemplate {
 public:
    // Mistakes are reported.
    static CommandTemplate compile(const config::Command& command, CompileContext& context);

    // Refuses what execve would misunderstand: a NUL, and an option that an argument smuggles in.
    [[nodiscard]] Rendered<ProcessSpec> render(const Scope& scope) const;
    [[nodiscard]] const std::string& program() const { return program_; }

 private:
    void compile_argv(const config::Command& command, CompileContext& context);
    void compile_environment(const config::Command& command, CompileContext& context);

    std::string program_;
    std::vector<Template> arguments_;  // behind the program
    bool allow_dash_ = false;
    std::vector<std::pair<std::string, Template>> environment_;
    std::optional<Template> input_;
    std::string directory_;
};

}  // namespace tools
