#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "outbox/operation_key.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"
#include "tests/support/refusal.hpp"

using tests::Database;
using tests::refusal;
using tests::Session;

namespace {

std::string key(
    Session& session,
    const std::string& arguments,
    const std::string& run = "r",
    const std::string& occurrence = "1"
) {
    return session.text(
        "SELECT outbox.operation_key('t', $1::jsonb, $2, $3::integer)", {arguments, run, occurrence}
    );
}

std::string canonical(Session& session, const std::string& json, bool trim = true) {
    return session.text(
        "SELECT outbox.canonical_json($1::jsonb, $2::boolean)", {json, trim ? "t" : "f"}
    );
}

// A number as a program would write it: some of the cases that tell implementations apart.
std::string random_number(std::mt19937_64& random) {
    auto pick = [&](int low, int high) {
        return std::uniform_int_distribution<int>(low, high)(random);
    };
    std::string digits;
    for (int n = pick(1, pick(0, 3) == 0 ? 24 : 18); n > 0; --n) {
        digits += static_cast<char>('0' + pick(digits.empty() ? 1 : 0, 9));
    }
    std::string text = pick(0, 1) == 0 ? "-" : "";
    text += digits.substr(0, 1);
    if (digits.size() > 1) {
        text += "." + digits.substr(1);
    }
    int exponent = pick(0, 3) == 0 ? pick(-330, 310) : pick(-10, 25);
    return text + "e" + std::to_string(exponent);
}

// The shortest text of a random double, and the neighbours of a tie.
std::string random_double(std::mt19937_64& random) {
    for (;;) {
        auto bits = random();
        double value = 0;
        static_assert(sizeof(bits) == sizeof(value));
        std::memcpy(&value, &bits, sizeof(value));
        if (std::isfinite(value)) {
            std::ostringstream text;
            text.precision(17 - static_cast<int>(random() % 2));
            text << value;
            return text.str();
        }
    }
}

}  // namespace

TEST_CASE("the derived id in SQL agrees with the vectors") {
    Database database;
    auto session = database.connect();
    std::ifstream file(OUTBOX_SOURCE_DIR "/tests/vectors/operation_keys.json");
    std::stringstream text;
    text << file.rdbuf();
    auto cases = boost::json::parse(text.str()).at("cases").as_array();
    REQUIRE(cases.size() >= 25);
    for (const auto& item : cases) {
        auto text_of = [&](const char* name) { return std::string(item.at(name).as_string()); };
        INFO(text_of("canonical"));
        auto occurrence = std::to_string(item.at("occurrence").as_int64());
        tests::Row row{text_of("tool"), text_of("arguments_text"), text_of("run_id"), occurrence};
        CHECK(
            session.text("SELECT outbox.operation_key($1, $2::jsonb, $3, $4::integer)", row) ==
            text_of("key")
        );
        CHECK(
            session.text("SELECT outbox.derive_id($1, $2::jsonb, $3, $4::integer)", row) ==
            text_of("key")
        );
    }
}

TEST_CASE("argument order does not change the key") {
    Database database;
    auto session = database.connect();
    CHECK(
        key(session, R"({"sku": "A", "quantity": 2, "to": {"b": 1, "a": [1, 2]}})") ==
        key(session, R"({"to": {"a": [1, 2], "b": 1}, "quantity": 2.0, "sku": " A\n"})")
    );
    CHECK(key(session, R"({"a": [1, 2]})") != key(session, R"({"a": [2, 1]})"));
    CHECK(key(session, R"({"a": null})") != key(session, "{}"));
}

TEST_CASE("a new run is a new intent") {
    Database database;
    auto session = database.connect();
    CHECK(
        key(session, R"({"title": "disk full"})", "monday") !=
        key(session, R"({"title": "disk full"})", "tuesday")
    );
    CHECK(key(session, "{}", "r", "2") != key(session, "{}", "r", "1"));

    auto enqueue = [&](const std::string& run) {
        return session.query(
            "SELECT replayed, operation_id FROM outbox.enqueue('create_ticket', "
            "'{\"title\": \"disk full\"}', run_id => $1)",
            {run}
        )[0];
    };
    auto monday = enqueue("monday");
    CHECK(monday[0] == "f");
    CHECK(enqueue("monday") == tests::Row{"t", monday[1]});
    CHECK(enqueue("tuesday")[0] == "f");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "2");
}

TEST_CASE("numbers keep their exact value in the key") {
    Database database;
    auto session = database.connect();
    // 1e23 is the tie that tells: its double prints as 9.999999999999999e+22 where the ends of the
    // rounding interval are left out, and as 1e+23 in ECMAScript.
    CHECK(
        canonical(session, "[1e23, 99999999999999990000000, 9007199254740993, 9007199254740992]") ==
        "[1e+23,99999999999999990000000,9007199254740993,9007199254740992]"
    );
    CHECK(
        canonical(session, "[5e-324, 1.7976931348623157e308, -0.0, 1e21, 1e20, 1e-6, 1e-7]") ==
        "[5e-324,1.7976931348623157e+308,0,1e+21,100000000000000000000,0.000001,1e-7]"
    );
    auto digits = "1." + std::string(99, '3');
    CHECK(canonical(session, digits) == digits);

    for (std::string number : {"1.3e401", "1e-401", "1e131071", "1e-16000", "0.1e-15999"}) {
        INFO(number);
        auto error = refusal(
            session,
            "SELECT outbox.operation_key('t', $1::jsonb, 'r')",
            {"{\"n\": [" + number + "]}"}
        );
        CHECK(error.sqlstate == "OB400");
        CHECK_FALSE(error.detail.empty());
        CHECK_FALSE(error.hint.empty());
    }
    CHECK(
        refusal(session, "SELECT outbox.canonical_number($1::numeric)", {digits + "3"}).sqlstate ==
        "OB400"
    );
}

TEST_CASE("SQL and C++ make the same canonical number") {
    Database database;
    auto session = database.connect();
    auto seed = std::random_device{}();
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<std::string> numbers;
    std::string list;
    for (int i = 0; i < 4000; ++i) {
        numbers.push_back(i % 2 == 0 ? random_number(random) : random_double(random));
        list += (i == 0 ? "[" : ",") + numbers.back();
    }
    auto rows = session.query(
        "SELECT outbox.canonical_number(v::numeric) "
        "FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY e (v, n) ORDER BY n",
        {list + "]"}
    );
    REQUIRE(rows.size() == numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        auto expected = outbox::canonical_number(numbers[i]);
        if (expected.error || rows[i][0] != expected.text) {
            INFO(numbers[i]);
            CHECK(rows[i][0] == expected.text);
        }
    }
}

TEST_CASE("object keys are sorted by UTF-16 code units") {
    Database database;
    auto session = database.connect();
    CHECK(
        canonical(session, R"({"\uffff": 1, "\udbff\udfff": 2, "\udbff\udfff\ud83d\ude00": 3,
        "\ud83d\ude00": 4, "\ue000": 5, "\ud7ff": 6, "\udbff\udfff\ue000": 7, "a": 8, "": 9})") ==
        "{\"\":9,\"a\":8,\"\uD7FF\":6,\"\U0001F600\":4,\"\U0010FFFF\":2,"
        "\"\U0010FFFF\U0001F600\":3,\"\U0010FFFF\uE000\":7,\"\uE000\":5,\"\uFFFF\":1}"
    );
}

TEST_CASE("string values are trimmed as ECMAScript does, keys are not") {
    Database database;
    auto session = database.connect();
    CHECK(
        canonical(
            session,
            R"({" k ": ["\t\u000b\f \u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeffx y\r\n"]})"
        ) == R"({" k ":["x y"]})"
    );
    // U+200B and U+0085 are no white space there.
    CHECK(canonical(session, R"(["\u200bx\u0085"])") == "[\"\u200Bx\u0085\"]");
    CHECK(canonical(session, R"([" x "])", false) == R"([" x "])");
    CHECK(canonical(session, R"(["\u0001\u001f\b\"\\/"])") == R"(["\u0001\u001f\b\"\\/"])");
}

TEST_CASE("SQL writes the examples of RFC 8785 as they are there") {
    Database database;
    auto session = database.connect();
    std::ifstream file(OUTBOX_SOURCE_DIR "/tests/vectors/rfc8785.json");
    std::stringstream text;
    text << file.rdbuf();
    const auto vectors = boost::json::parse(text.str());
    for (const auto& sample : vectors.at("documents").as_array()) {
        auto document = std::string(sample.at("text").as_string());
        INFO(document);
        CHECK(
            canonical(session, document, false) == std::string(sample.at("canonical").as_string())
        );
    }
    for (const auto& sample : vectors.at("numbers").as_array()) {
        auto number = std::string(sample.at(1).as_string());
        INFO(number);
        CHECK(canonical(session, number) == number);
    }
}

TEST_CASE("the key does not depend on the session") {
    Database database;
    auto session = database.connect();
    auto arguments =
        R"({"n": [0.30000000000000004, 1e23, 1.5e300, 9007199254740993], "s": "é", "\ue000": 1, "\ud83d\ude00": 2})";
    auto expected = key(session, arguments);
    session.run(
        "SET extra_float_digits = -15; SET bytea_output = 'escape'; "
        "SET standard_conforming_strings = off; SET lc_numeric = 'C'; "
        "CREATE SCHEMA evil; "
        "CREATE FUNCTION evil.encode(bytea, text) RETURNS text LANGUAGE sql AS "
        "$$SELECT 'stolen'$$; "
        "CREATE FUNCTION evil.cat(text, text) RETURNS text LANGUAGE sql AS $$SELECT 'x'$$; "
        "CREATE OPERATOR evil.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.cat); "
        "SET search_path = evil, pg_catalog"
    );
    CHECK(key(session, arguments) == expected);
}

TEST_CASE("no setting of a session changes the key, or what enqueue makes of it") {
    Database database;
    auto plain = database.connect();
    const std::string arguments =
        R"({"n": [0.30000000000000004, 1e23, 1.5e300, 9007199254740993, -0.0], "s": " \u00e9\u0001 ",)"
        R"( "at": "2026-11-30", "\ue000": null, "\ud83d\ude00": ["\\", "'", "$$"]})";
    const auto expected = key(plain, arguments, "r \\ ' r");
    const std::string enqueue =
        "SELECT operation_id, status FROM outbox.enqueue('t', $1::jsonb, run_id => $2)";
    const auto id = plain.query(enqueue, {arguments, "r"})[0][0];
    const std::vector<std::string> settings{
        "extra_float_digits = -15",
        "extra_float_digits = 3",
        "DateStyle = 'German, DMY'",
        "IntervalStyle = 'sql_standard'",
        "timezone = 'Asia/Kolkata'",
        "lc_monetary = 'C'",
        "lc_numeric = 'C'",
        "lc_time = 'C'",
        "standard_conforming_strings = off",
        "backslash_quote = off",
        "escape_string_warning = off",
        "bytea_output = 'escape'",
        "quote_all_identifiers = on",
        "transform_null_equals = on",
        "array_nulls = off",
        "xmloption = 'document'",
        "search_path = ''",
        "search_path = 'pg_temp, public'",
        "plpgsql.extra_errors = 'all'",
        "plan_cache_mode = 'force_generic_plan'",
        "plan_cache_mode = 'force_custom_plan'",
        "enable_sort = off",
        "enable_indexscan = off",
        "work_mem = '64kB'",
        "row_security = off",
        "jit = on",
        "jit_above_cost = 1000",
        "default_transaction_isolation = 'serializable'",
        "synchronous_commit = off",
        "client_encoding = 'SQL_ASCII'",
    };
    auto all = database.connect();
    for (const auto& setting : settings) {
        INFO(setting);
        auto session = database.connect();
        session.run("SET " + setting);
        CHECK(key(session, arguments, "r \\ ' r") == expected);
        CHECK(session.query(enqueue, {arguments, "r"}) == tests::Rows{{id, "pending"}});
        all.run("SET " + setting);
    }
    CHECK(key(all, arguments, "r \\ ' r") == expected);
    CHECK(all.query(enqueue, {arguments, "r"}) == tests::Rows{{id, "pending"}});

    // The client's encoding says how the characters come in, not what they are.
    auto latin = database.connect();
    latin.run("SET client_encoding = 'LATIN1'");
    CHECK(key(latin, "{\"s\": \"\xe9\"}") == key(plain, "{\"s\": \"\u00e9\"}"));
    CHECK(key(latin, "{\"s\": \"\xa0x\"}") == key(plain, "{\"s\": \"x\"}"));
    auto ascii = database.connect();
    ascii.run("SET client_encoding = 'SQL_ASCII'");
    CHECK(
        refusal(ascii, "SELECT outbox.operation_key('t', $1::jsonb, 'r')", {"{\"s\": \"\xe9\"}"})
            .sqlstate == "22021"
    );
}

TEST_CASE("nesting is bounded") {
    Database database;
    auto session = database.connect();
    auto nested = [](int levels) {
        std::string text = "{\"a\": ";
        for (int i = 1; i < levels; ++i) {
            text += "[";
        }
        return text + std::string(static_cast<std::size_t>(levels - 1), ']') + "}";
    };
    CHECK_NOTHROW(key(session, nested(512)));
    // What stands in the innermost one is no level; the daemon's parser counts the same way.
    auto full = nested(512);
    full.insert(full.find(']'), "1");
    CHECK(
        key(session, full) == outbox::operation_key("t", *outbox::parse_json(full).value, "r").key
    );
    CHECK(
        refusal(session, "SELECT outbox.operation_key('t', $1::jsonb, 'r')", {nested(514)})
            .sqlstate == "OB400"
    );
}

TEST_CASE("dedup.fields of the catalogue choose what makes the id") {
    Database database;
    auto session = database.connect();
    tests::publish_tool(session, "create_ticket", "{title,severity}");
    auto derive = [&](const std::string& arguments) {
        return session.text(
            "SELECT outbox.derive_id('create_ticket', $1::jsonb, 'r')", {arguments}
        );
    };
    CHECK(
        derive(R"({"title": "x", "severity": null, "note": "a"})") ==
        derive(R"({"note": "b", "severity": null, "title": "x "})")
    );
    CHECK(
        derive(R"({"title": "x", "severity": null})") ==
        session.text("SELECT outbox.operation_key('create_ticket', "
                     "'{\"title\": \"x\", \"severity\": null}', 'r')")
    );
    auto error =
        refusal(session, "SELECT outbox.derive_id('create_ticket', '{\"title\": \"x\"}', 'r')");
    CHECK(error.sqlstate == "OB400");
    CHECK_THAT(error.what(), ContainsSubstring("severity"));
    CHECK_THAT(error.detail, ContainsSubstring("title, severity"));

    auto replay = session.query(
        "SELECT replayed, message FROM outbox.enqueue_many('["
        R"({"tool": "create_ticket", "run_id": "r", "arguments": {"title": "x", "severity": 1, "note": 1}},)"
        R"({"tool": "create_ticket", "run_id": "r", "arguments": {"title": "x", "severity": 1, "note": 2}}]'))"
    );
    CHECK(replay[1][0] == "t");
    CHECK_THAT(*replay[1][1], ContainsSubstring("differed"));
}

TEST_CASE("what cannot make a key is refused") {
    Database database;
    auto session = database.connect();
    for (std::string call :
         {"'t', '{}', NULL", "NULL, '{}', 'r'", "'t', NULL, 'r'", "'t', '{}', 'r', 0"}) {
        INFO(call);
        CHECK(refusal(session, "SELECT outbox.operation_key(" + call + ")").sqlstate == "OB400");
    }
}
