#pragma once

#include <string>
#include <vector>

namespace outboxd {

// Columns for people: two spaces between, the last one as wide as it is. Cells are made printable.
class Table {
 public:
    explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    [[nodiscard]] std::string text() const;  // every line ends with a newline

 private:
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace outboxd
