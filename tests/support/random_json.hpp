#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tests {

enum class Numbers {
    any,      // also what no double holds, what a key refuses, and strings that jsonb refuses
    doubles,  // the value of every number is a double's shortest form
};

// JSON objects that tell implementations of the canonical form apart. What a document says comes
// from `value_seed`, how it is written (order of members, white space, escapes, spelling of
// numbers, repeated keys, padding that trim() takes off) from `spelling_seed`: two documents of one
// value seed mean the same. Equal seeds give equal texts on every machine.
class RandomJson {
 public:
    RandomJson(std::uint64_t value_seed, std::uint64_t spelling_seed, Numbers numbers);

    // Text of an object, as a careless program would write it.
    std::string object();
    // A name as tools and runs have them: any characters but NUL, not trimmed by anybody.
    std::string name();

 private:
    struct Digits {
        bool negative;
        std::string digits;  // at least one; the value is 0.digits × 10^exponent
        long exponent;
    };

    [[nodiscard]] std::uint64_t value_below(std::uint64_t bound) { return value_() % bound; }
    [[nodiscard]] std::uint64_t spelling_below(std::uint64_t bound) { return spelling_() % bound; }

    std::string value(int depth);
    std::string object(int depth);
    std::string array(int depth);
    std::string chain();
    std::string number();
    Digits exact_number();
    Digits double_number();
    std::string random_digits(std::uint64_t count);
    std::string spell(const Digits& number);
    std::u32string characters(std::uint64_t at_most);
    std::string spell(const std::u32string& text);
    std::string blank();  // between two tokens

    std::mt19937_64 value_;
    std::mt19937_64 spelling_;
    Numbers numbers_;
    bool hostile_ = false;  // this document may hold what is refused
};

}  // namespace tests
