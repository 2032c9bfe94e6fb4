#include "tools/pointer.hpp"

#include <string>

namespace tools {

bool check_pointer(
    std::string_view pointer, const config::Mark& mark, config::Diagnostics& diagnostics
) {
    const std::string shown = "\"" + std::string(pointer) + "\"";
    if (pointer.find("{{") != std::string_view::npos) {
        diagnostics.error(mark, shown + ": a template cannot be a pointer");
        return false;
    }
    if (!pointer.empty() && pointer.front() != '/') {
        diagnostics.error(
            mark, shown + " is no JSON Pointer", "did you mean /" + std::string(pointer) + "?"
        );
        return false;
    }
    for (auto at = pointer.find('~'); at != std::string_view::npos;
         at = pointer.find('~', at + 1)) {
        if (at + 1 < pointer.size() && (pointer[at + 1] == '0' || pointer[at + 1] == '1')) continue;
        diagnostics.error(
            mark, shown + " is no JSON Pointer", "write ~ as ~0 and / in a name as ~1"
        );
        return false;
    }
    return true;
}

}  // namespace tools
