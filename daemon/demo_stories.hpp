#pragma once

#include <span>
#include <string>

#include "daemon/demo_world.hpp"

namespace outboxd {

// What a story found besides the number of tickets is wrong.
class StoryError : public std::runtime_error {
 public:
    using std::runtime_error::runtime_error;
};

struct Story {
    std::string name;
    int expected = 0;  // tickets
    // Tells it, returns the title under which its tickets are counted.
    std::string (*tell)(DemoWorld& world) = nullptr;
};

// In the order they are told; each finds the service up and one daemon running where it needs one.
[[nodiscard]] std::span<const Story> demo_stories();

}  // namespace outboxd
