// main() of a harness where libFuzzer is not: runs every kept input, then, for --seconds N, inputs
// made from them by small mutations. No coverage leads it, so it finds less than libFuzzer does in
// the same time; but it runs with any compiler and under every sanitizer.
//
//     fuzz_json [--seconds N] [--seed S] FILE|FOLDER…
//
// An input that breaks something is left in the working folder as broken-NAME.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/harness.hpp"

// ASan ends the process by itself; elsewhere this is not there.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxInput = 64 * 1024;
constexpr unsigned kHang = 60;  // seconds for one input, on a busy machine too

std::string current;  // the input under way
std::string broken;   // where it is left

// Async-signal-safe, as far as the handlers of SIGABRT and SIGALRM need it.
void keep_input() {
    static bool kept = false;
    if (std::exchange(kept, true)) return;
    if (std::FILE* out = std::fopen(broken.c_str(), "wb")) {
        std::fwrite(current.data(), 1, current.size(), out);
        std::fclose(out);
        std::fprintf(stderr, "the input is in %s\n", broken.c_str());
    }
}

void on_signal(int signal) {
    if (signal == SIGALRM) std::fprintf(stderr, "BROKEN: no end after %u s\n", kHang);
    keep_input();
    std::signal(SIGABRT, SIG_DFL);
    std::abort();
}

void run(std::string input) {
    current = std::move(input);
    alarm(kHang);
    // A copy of the exact size: reading past the end is an error that ASan sees.
    const std::vector<char> exact(current.begin(), current.end());
    fuzz::run_input({exact.data(), exact.size()});
    alarm(0);
}

std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        std::fprintf(stderr, "cannot read %s\n", path.c_str());
        std::exit(2);
    }
    return {std::istreambuf_iterator<char>(in), {}};
}

class Mutator {
 public:
    Mutator(std::vector<std::string> seeds, std::uint64_t seed)
        : seeds_(std::move(seeds)), random_(seed) {}

    std::string next() {
        auto input = seeds_[below(seeds_.size())];
        for (auto steps = 1 + below(4); steps > 0; --steps) step(input);
        if (input.size() > kMaxInput) input.resize(kMaxInput);
        return input;
    }

 private:
    std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

    void step(std::string& input) {
        const auto at = below(input.size() + 1);
        const auto length = below(std::min<std::size_t>(input.size() - at, 64) + 1);
        switch (below(6)) {
            case 0:  // one bit
                if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
                break;
            case 1:  // one byte
                input.insert(at, 1, static_cast<char>(below(256)));
                break;
            case 2:  // a piece gone
                input.erase(at, length);
                break;
            case 3:  // a piece again
                input.insert(below(input.size() + 1), input.substr(at, length));
                break;
            case 4: {  // a piece of another input
                const auto& other = seeds_[below(seeds_.size())];
                const auto from = below(other.size() + 1);
                input.insert(at, other.substr(from, below(64)));
                break;
            }
            default: {  // the head of this, the tail of another
                const auto& other = seeds_[below(seeds_.size())];
                input = input.substr(0, at) + other.substr(below(other.size() + 1));
            }
        }
    }

    std::vector<std::string> seeds_;
    std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
    const char* wanted = std::getenv("OUTBOXD_FUZZ_SECONDS");
    long seconds = wanted == nullptr ? 0 : std::atol(wanted);
    std::uint64_t seed = 1;
    std::vector<fs::path> files;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--seconds" && i + 1 < argc) {
            seconds = std::atol(argv[++i]);
        } else if (argument == "--seed" && i + 1 < argc) {
            seed = std::strtoull(argv[++i], nullptr, 10);
        } else if (fs::is_directory(argument)) {
            for (const auto& entry : fs::directory_iterator(argument)) files.push_back(entry);
        } else {
            files.emplace_back(argument);
        }
    }
    std::sort(files.begin(), files.end());
    broken = "broken-" + fs::path(argv[0]).filename().string();
    std::signal(SIGABRT, on_signal);
    std::signal(SIGALRM, on_signal);
    if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_input);

    std::vector<std::string> seeds;
    for (const auto& file : files) {
        seeds.push_back(read(file));
        run(seeds.back());
    }
    std::size_t mutated = 0;
    if (seeds.empty()) {
        std::fprintf(stderr, "no inputs: name files or a folder\n");
        return 2;
    }
    const auto kept = seeds.size();
    Mutator mutator(std::move(seeds), seed);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    for (; std::chrono::steady_clock::now() < until; ++mutated) run(mutator.next());
    std::printf(
        "%zu kept inputs, %zu mutated ones, seed %llu\n",
        kept,
        mutated,
        static_cast<unsigned long long>(seed)
    );
    return 0;
}
