#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace config {

// What the loader asked for while it read a file: every key it knows, with its type and range. For
// the test that keeps config/outboxd.schema.json equal to the loader; a daemon records nothing.
struct Inventory {
    struct Key {
        std::string mapping;  // worker.poll
        std::string key;
        std::string type;  // duration, integer, choice, …
        std::string min, max;
        std::vector<std::string> names;  // of a choice
    };
    struct Mapping {
        std::string path;
        std::vector<std::string> known;  // without those that are refused
    };
    std::vector<Key> keys;
    std::vector<Mapping> mappings;

    // While it lives, what this thread's loader asks for goes in here.
    class Recording {
     public:
        explicit Recording(Inventory& inventory);
        ~Recording();
        Recording(const Recording&) = delete;
        Recording& operator=(const Recording&) = delete;
    };
    // Null when nothing is recorded.
    [[nodiscard]] static Inventory* current();
};

}  // namespace config
