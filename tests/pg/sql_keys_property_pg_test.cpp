// The derived id of random documents: SQL and C++ make the same key, refuse the same, and two
// spellings of one value have one key. OUTBOXD_KEY_SEED repeats a run, OUTBOXD_KEY_DOCUMENTS sets
// how many.
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "outbox/json.hpp"
#include "outbox/operation_key.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/random_json.hpp"

using tests::Database;
using tests::Numbers;
using tests::RandomJson;
using tests::Session;

namespace {

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Document {
    std::string tool;
    std::string run_id;
    std::string arguments;  // JSON text
    int occurrence;
};

// Documents 2n and 2n + 1 say the same in other words.
Document document(std::uint64_t seed, std::uint64_t number) {
    RandomJson random(seed + number / 2, seed ^ (number << 1U), Numbers::any);
    Document made;
    made.tool = random.name();
    made.run_id = random.name();
    made.arguments = random.object();
    made.occurrence = number / 2 % 5 == 0 ? 1 + static_cast<int>(number / 2 % 7) : 1;
    return made;
}

// Empty: it has no key.
std::string key_in_cpp(const Document& document) {
    const auto parsed = outbox::parse_json(document.arguments);
    if (!parsed.value) return {};
    return outbox::operation_key(document.tool, *parsed.value, document.run_id, document.occurrence)
        .key;
}

// One query for all of them: [[tool, run_id, arguments, occurrence], …] in one parameter.
std::vector<std::string> keys_in_sql(Session& session, const std::vector<Document>& documents) {
    outbox::Json::Array list;
    for (const auto& d : documents) {
        list.emplace_back(outbox::Json::Array{d.tool, d.run_id, d.arguments, d.occurrence});
    }
    auto rows = session.query(
        "SELECT pg_temp.key_of(d ->> 0, d ->> 2, d ->> 1, (d ->> 3)::integer) "
        "FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY e (d, n) ORDER BY n",
        {outbox::to_text(outbox::Json(std::move(list)))}
    );
    std::vector<std::string> keys;
    for (auto& row : rows) keys.push_back(*row[0]);
    return keys;
}

// A session that answers what has no key with an empty text: OB400, or no jsonb at all.
Session keying(const Database& database) {
    auto session = database.connect();
    session.run(
        "CREATE FUNCTION pg_temp.key_of(tool text, arguments text, run_id text, n integer) "
        "RETURNS text LANGUAGE plpgsql AS $$ BEGIN "
        "RETURN outbox.operation_key(tool, arguments::jsonb, run_id, n); "
        "EXCEPTION WHEN SQLSTATE 'OB400' OR data_exception THEN RETURN ''; END $$"
    );
    return session;
}

}  // namespace

TEST_CASE("SQL and C++ make the same key of any document, and of any spelling of it") {
    const auto seed = setting("OUTBOXD_KEY_SEED", std::random_device{}());
    const auto count = setting("OUTBOXD_KEY_DOCUMENTS", 20'000);
    constexpr std::uint64_t kBatch = 1000;
    Database database;
    std::mutex guard;
    std::string first_fault;
    std::uint64_t next = 0;
    std::uint64_t refused = 0;

    auto work = [&] {
        auto session = keying(database);
        for (;;) {
            std::uint64_t from = 0;
            {
                const std::lock_guard lock(guard);
                if (next >= count || !first_fault.empty()) return;
                from = next;
                next += kBatch;
            }
            std::vector<Document> documents;
            for (auto n = from; n < std::min(from + kBatch, count); ++n) {
                documents.push_back(document(seed, n));
            }
            const auto in_sql = keys_in_sql(session, documents);
            const std::lock_guard lock(guard);
            for (std::size_t i = 0; i < documents.size() && first_fault.empty(); ++i) {
                const auto in_cpp = key_in_cpp(documents[i]);
                refused += in_cpp.empty() ? 1 : 0;
                const bool differ = in_sql[i] != in_cpp;
                const bool torn = i % 2 == 1 && in_sql[i] != in_sql[i - 1];
                if (differ || torn) {
                    first_fault = "document " + std::to_string(from + i) + " " +
                                  documents[i].arguments + "\nSQL " + in_sql[i] + "\nC++ " +
                                  in_cpp + "\nits twin " + documents[i ^ 1U].arguments + "\nSQL " +
                                  in_sql[i ^ 1U];
                }
            }
        }
    };
    std::thread other(work);
    work();
    other.join();
    INFO("OUTBOXD_KEY_SEED=" << seed << " OUTBOXD_KEY_DOCUMENTS=" << count << " repeats it");
    CHECK(first_fault == "");
    // Some have no key, most have.
    CHECK(refused > 0);
    CHECK(refused < count / 10);
}

// canonical_json has a short way for flat objects of plain ASCII. These documents lie on both sides
// of what it takes: names and values are drawn from what could mislead it.
TEST_CASE("SQL and C++ make the same key of flat documents that the short way could mistake") {
    const std::vector<std::string> names{
        "a",       "b",      "B",      "aa",     "Z",  "_",       "a b", "a ",
        " a",      "a,",     "a:",     "1",      "a]", "a[",      "a}",  "a{",
        "NULL",    "a\\\\b", "a\\\"b", "\u00e9", "~",  "\\u007f", "",    "\\ud83d\\ude00",
        "\\uff61",
    };
    const std::vector<std::string> values{
        R"("x")",
        R"(" x")",
        R"("x ")",
        R"("x\t")",
        R"("\u00a0x")",
        R"(", ")",
        R"(": ")",
        R"(",")",
        R"("}")",
        R"("{")",
        R"("]")",
        R"("[a")",
        R"("a [b], {c}")",
        R"("a\\b")",
        R"("a\"b")",
        R"("/")",
        R"("")",
        R"("\u00e9")",
        R"("\u007f")",
        R"("10.50,")",
        R"("1.0")",
        "0",
        "-0.0",
        "0.0",
        "1.0",
        "1.5",
        "1.50",
        "10",
        "100",
        "-5",
        "-0.5",
        "12.30",
        "0.001",
        "0.0001",
        "0.000001",
        "0.0000001",
        "1e21",
        "1e20",
        "1e-7",
        "1.25e2",
        "123456789012345678",
        "1234567890.12345678",
        "9007199254740993",
        "0.10000000000000001",
        "true",
        "false",
        "null",
        "[]",
        "{}",
        "[1]",
        R"({"b": 1, "a": 2})",
    };
    const auto seed = setting("OUTBOXD_KEY_SEED", std::random_device{}());
    std::mt19937_64 random(seed);
    Database database;
    auto session = keying(database);
    std::vector<Document> documents;
    auto add = [&](std::vector<std::string> members) {
        std::string text = "{";
        for (const auto& member : members) text += (text.size() > 1 ? ", " : "") + member;
        documents.push_back({"create_ticket", "run-1", text + "}", 1});
    };
    for (const auto& name : names) {
        for (const auto& value : values) {
            add({"\"" + name + "\": " + value});
            add({"\"m\": 1", "\"" + name + "\": " + value, "\"k\": \"v\""});
        }
    }
    for (int n = 0; n < 2000; ++n) {
        std::vector<std::string> members;
        std::vector<std::string> unused = names;
        for (auto left = random() % 6; left > 0; --left) {
            const auto at = unused.begin() + static_cast<std::ptrdiff_t>(random() % unused.size());
            members.push_back("\"" + *at + "\": " + values[random() % values.size()]);
            unused.erase(at);
        }
        add(members);
    }
    // Larger than the short way takes, and as large as it does.
    for (std::size_t size : {1'900U, 1'980U, 2'000U, 2'100U, 3'000U}) {
        add({"\"" + std::string(size, 'n') + "\": 1", "\"b\": 2"});
        add({"\"b\": \"" + std::string(size, 'v') + "\"", "\"a\": 2"});
    }
    INFO("OUTBOXD_KEY_SEED=" << seed << " repeats it");
    const auto in_sql = keys_in_sql(session, documents);
    for (std::size_t i = 0; i < documents.size(); ++i) {
        if (in_sql[i] == key_in_cpp(documents[i])) continue;
        INFO(documents[i].arguments);
        CHECK(in_sql[i] == key_in_cpp(documents[i]));
    }
}
