#include <fmt/format.h>

#include <charconv>

#include "config/sections.hpp"

namespace config {
namespace {

void read_argv(MapReader& in, std::string_view key, Command& out) {
    const auto* argv = in.require(key, "a list: [/usr/bin/program, argument]; there is no shell");
    if (!argv) return;
    if (!in.texts(key, out.argv)) return;
    if (out.argv.empty()) {
        in.error(argv->value, key, "must not be empty", "the program comes first");
    } else if (out.argv[0].value.find("{{") != std::string::npos) {
        in.diagnostics().error(
            out.argv[0].mark,
            fmt::format("{}.{}: a template as the program", in.path(), key),
            "the file says what runs; templates may fill the arguments"
        );
    } else if (out.argv[0].value.empty() && !argv->value.items[0].unresolved) {
        in.error(argv->value.items[0], key, "the program must not be empty", {});
    }
}

bool is_variable_name(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    return name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
           ) == std::string_view::npos;
}

void read_environment(MapReader& in, Command& out) {
    in.text_map("env", out.env);
    for (const auto& [name, value] : out.env) {
        if (!is_variable_name(name.value)) {
            in.diagnostics().error(
                name.mark,
                fmt::format("{}.env: {} is no name of a variable", in.path(), name.value),
                "letters, digits and _"
            );
        } else if (name.value.rfind("OUTBOX_", 0) == 0) {
            in.diagnostics().error(
                name.mark,
                fmt::format("{}.env: {} is reserved", in.path(), name.value),
                "OUTBOX_OPERATION_ID, OUTBOX_KEY and OUTBOX_ATTEMPT are always there"
            );
        }
    }
}

bool is_exit_code(std::string_view text) {
    if (text == "default") return true;
    int code = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
    return error == std::errc() && end == text.data() + text.size() && code >= 0 && code <= 255;
}

// 126 and 127 are a shell's words for a program that could not be run, and `default` covers them.
void check_absent(const Text& code, const Text& then, MapReader& in) {
    if (code.value != "default" && code.value != "126" && code.value != "127") return;
    in.diagnostics().error(
        then.mark,
        fmt::format(
            "{}.exit_codes.{}: a look-up that could not be run (126, 127) cannot mean absent",
            in.path(),
            code.value
        ),
        "name the exit code that says so: { 1: absent, default: inconclusive }"
    );
}

void read_exit_codes(MapReader& in, Phase phase, Command& out) {
    std::vector<std::pair<Text, Text>> codes;
    in.text_map("exit_codes", codes);
    for (auto& [code, then] : codes) {
        const bool known = is_exit_code(code.value);
        if (!known) {
            in.diagnostics().error(
                code.mark,
                fmt::format("{}.exit_codes: {} is no exit code", in.path(), code.value),
                "0 to 255, or default"
            );
        }
        check_then(
            then, fmt::format("{}.exit_codes.{}", in.path(), code.value), phase, in.diagnostics()
        );
        if (phase == Phase::reconcile && then.value == "absent") {
            check_absent(code, then, in);
        }
        if (known) out.exit_codes.emplace_back(code.value, std::move(then));
    }
}

}  // namespace

Command read_program(MapReader& in, std::string_view key) {
    Command out;
    out.mark = in.key_mark();
    read_argv(in, key, out);
    read_environment(in, out);
    in.string("cwd", out.cwd);
    in.boolean("allow_dash", out.allow_dash);
    return out;
}

Command read_command(MapReader& in, Phase phase) {
    auto out = read_program(in, "argv");
    in.text("stdin", out.stdin_text);
    std::string stdout_as = "json";
    in.choice("stdout", stdout_as, {"json", "text"});
    out.stdout_text = stdout_as == "text";
    read_exit_codes(in, phase, out);
    read_rules(in, phase, out.rules, out.has_rules);
    in.free("result", out.result);
    if (phase == Phase::reconcile && in.is_mapping() && !in.has("exit_codes") && !out.has_rules) {
        in.diagnostics().error(
            in.key_mark(),
            fmt::format("{}.exit_codes is missing", in.path()),
            "exit_codes: { 0: found, 1: absent, default: inconclusive }"
        );
    }
    return out;
}

}  // namespace config
