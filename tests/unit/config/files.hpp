#pragma once

#include <string>

#include "config/load.hpp"

namespace config_test {

// A folder of its own, gone at the end.
class Folder {
 public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    // Writes a file, folders included; returns its path.
    std::string write(const std::string& name, const std::string& text) const;
    [[nodiscard]] const std::string& path() const { return path_; }

 private:
    std::string path_;
};

// An environment variable, set (or, with nullptr, unset) until the end of the scope.
class Variable {
 public:
    Variable(std::string name, const char* value);
    ~Variable();
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

 private:
    std::string name_;
    bool was_set_ = false;
    std::string before_;
};

[[nodiscard]] std::string read(const std::string& path);

// Loads a text as a file; the name in diagnostics is its path.
[[nodiscard]] config::Loaded load_text(const std::string& text);
// The same, and it must load without any diagnostic.
[[nodiscard]] config::Config must_load(const std::string& text);

// All diagnostics, one below the other.
[[nodiscard]] std::string text_of(const config::Diagnostics& diagnostics);

}  // namespace config_test
