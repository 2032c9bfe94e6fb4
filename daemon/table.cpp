#include "daemon/table.hpp"

#include <algorithm>

#include "daemon/text.hpp"

namespace outboxd {

std::string Table::text() const {
    std::vector<std::vector<std::string>> cells;
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
        auto& line = cells.emplace_back();
        for (std::size_t i = 0; i < row.size(); ++i) {
            line.push_back(printable(row[i]));
            if (i == widths.size()) widths.push_back(0);
            widths[i] = std::max(widths[i], code_points(line.back()));
        }
    }
    std::string out;
    for (const auto& line : cells) {
        std::string text;
        for (std::size_t i = 0; i < line.size(); ++i) {
            text += line[i];
            if (i + 1 < line.size()) text.append(widths[i] - code_points(line[i]) + 2, ' ');
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out += text + '\n';
    }
    return out;
}

}  // namespace outboxd
