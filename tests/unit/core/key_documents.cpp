// key_documents SEED COUNT: random documents whose numbers are doubles, one JSON object a line with
// what makes the key and the key. Another implementation of RFC 8785 reads them and says its
// opinion (tests/e2e/canonicalize.test.mjs).
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "outbox/json.hpp"
#include "outbox/operation_key.hpp"
#include "tests/support/random_json.hpp"

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: key_documents SEED COUNT\n";
        return 2;
    }
    const auto seed = std::strtoull(argv[1], nullptr, 10);
    const auto count = std::strtoull(argv[2], nullptr, 10);
    for (std::uint64_t i = 0; i < count; ++i) {
        tests::RandomJson random(seed + i / 2, seed ^ (i << 1U), tests::Numbers::doubles);
        const auto tool = random.name();
        const auto run = random.name();
        const auto text = random.object();
        const auto parsed = outbox::parse_json(text);
        if (!parsed.value) {
            std::cerr << "no JSON: " << text << '\n';
            return 1;
        }
        const int occurrence = i % 5 == 0 ? 1 + static_cast<int>(i % 3) : 1;
        outbox::Json line;
        line.set("tool", tool);
        line.set("run_id", run);
        line.set("occurrence", occurrence);
        line.set("arguments_text", text);
        line.set("key", outbox::operation_key(tool, *parsed.value, run, occurrence).key);
        std::cout << outbox::to_text(line) << '\n';
    }
    return 0;
}
