#include <iostream>
#include <string>
#include <vector>

#include "daemon/cli.hpp"

int main(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return outboxd::run_cli(arguments, {.out = std::cout, .err = std::cerr});
}
