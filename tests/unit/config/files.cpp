#include "tests/unit/config/files.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace config_test {

namespace fs = std::filesystem;

Folder::Folder() {
    auto pattern = (fs::temp_directory_path() / "outbox-config-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
}

Folder::~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
    const auto file = fs::path(path_) / name;
    fs::create_directories(file.parent_path());
    std::ofstream out(file, std::ios::binary);
    out << text;
    if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
    return file.string();
}

Variable::Variable(std::string name, const char* value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) {
        was_set_ = true;
        before_ = before;
    }
    value ? setenv(name_.c_str(), value, 1) : unsetenv(name_.c_str());
}

Variable::~Variable() {
    was_set_ ? setenv(name_.c_str(), before_.c_str(), 1) : unsetenv(name_.c_str());
}

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + path);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

config::Loaded load_text(const std::string& text) {
    const Folder folder;
    return config::load(folder.write("outboxd.yaml", text));
}

config::Config must_load(const std::string& text) {
    auto loaded = load_text(text);
    if (!loaded.config || !loaded.diagnostics.all().empty())
        throw std::runtime_error(text_of(loaded.diagnostics));
    return std::move(*loaded.config);
}

std::string text_of(const config::Diagnostics& diagnostics) {
    std::string out;
    for (const auto& diagnostic : diagnostics.all()) out += to_text(diagnostic) + '\n';
    return out;
}

}  // namespace config_test
