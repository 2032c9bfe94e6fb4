// Named parameters of a statement, among everything that only looks like one.
#include "config/sql_text.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using config::parse_sql;
using Names = std::vector<std::string>;

namespace {

// What a text without a parameter and without a mistake becomes: itself.
void stays(const std::string& text) {
    INFO(text);
    const auto parsed = parse_sql(text);
    CHECK(parsed.numbered == text);
    CHECK(parsed.names.empty());
    CHECK(parsed.problems.empty());
}

std::string problem_of(const std::string& text) {
    const auto parsed = parse_sql(text);
    INFO(text);
    REQUIRE(parsed.problems.size() == 1);
    return parsed.problems[0].what;
}

}  // namespace

TEST_CASE("parameters are numbered by name, in the order of their first use", "[config]") {
    const auto parsed = parse_sql("UPDATE t SET a = :a, b = :b WHERE a <> :a AND c=:c_2");
    CHECK(parsed.numbered == "UPDATE t SET a = $1, b = $2 WHERE a <> $1 AND c=$3");
    CHECK(parsed.names == Names{"a", "b", "c_2"});
    CHECK(parsed.keyword == "UPDATE");
    CHECK(parsed.problems.empty());
}

TEST_CASE("what stands next to a parameter does not grow together with it", "[config]") {
    CHECK(parse_sql("SELECT :a::int").numbered == "SELECT $1::int");
    CHECK(parse_sql("SELECT (:a)::numeric").numbered == "SELECT ($1)::numeric");
    CHECK(parse_sql("SELECT x:a").numbered == "SELECT x $1");
    CHECK(parse_sql("SELECT 1:a").numbered == "SELECT 1 $1");
    CHECK(parse_sql("SELECT :a:b").numbered == "SELECT $1 $2");
    CHECK(parse_sql("SELECT :a$b").numbered == "SELECT $1 $b");
    CHECK(parse_sql("SELECT ':x':a").numbered == "SELECT ':x'$1");
}

TEST_CASE("quotes of every kind keep what is in them", "[config]") {
    stays("SELECT ':a', 'it''s :a', '\\', ':b'");
    stays("SELECT E'\\':a', e'\\\\', ':b'");
    stays("SELECT \"col:a\", \"a\"\":b\"");
    stays("SELECT $$ :a ' $$, $x$ :a $$ :b $y$ $x$, $été$ :a $été$");
    stays("SELECT U&'\\0061:a', B'01', X'1F', N':a'");
    // A backslash is nothing special in a plain quote: this one ends, and :a is a parameter.
    CHECK(parse_sql("SELECT 'x\\', :a").names == Names{"a"});
    // The e of another word makes no escape string.
    CHECK(parse_sql("SELECT type'x\\', :a").names == Names{"a"});
    // A $ within a word begins no quote.
    CHECK(parse_sql("SELECT a$b$, :a, c$b$").names == Names{"a"});
}

TEST_CASE("casts, slices, := and lone colons are no parameters", "[config]") {
    stays("SELECT '1'::int, f(a := 1), x[1:2], x[1 : n], a[:2]");
    stays("SELECT x::text::varchar(10)");
    CHECK(parse_sql("SELECT a[1::b]").names.empty());
}

TEST_CASE("comments are left out, whatever they hold", "[config]") {
    CHECK(parse_sql("SELECT 1 -- :a ' \" $$ ;\n, :b").names == Names{"b"});
    CHECK(parse_sql("SELECT /* :a /* ; */ ' */ :b").names == Names{"b"});
    CHECK(parse_sql("-- first\n/* then */ select 1").keyword == "SELECT");
    CHECK(parse_sql("SELECT 1 -- the end").problems.empty());
    CHECK(parse_sql("SELECT 1 - -1, 4 / 2 * 3").numbered == "SELECT 1 - -1, 4 / 2 * 3");
    // Two tokens stay two.
    CHECK(parse_sql("SELECT/**/1").numbered == "SELECT 1");
}

TEST_CASE("one statement, with or without its semicolon", "[config]") {
    CHECK(parse_sql("SELECT ';' ; -- done\n").numbered == "SELECT ';'");
    CHECK(problem_of("SELECT 1; DELETE FROM t") == "several statements");
    CHECK(problem_of("SELECT 1;;;SELECT 2; SELECT 3") == "several statements");
    CHECK(problem_of("SELECT 1; /* x */ 'a'") == "several statements");
    CHECK(problem_of(";") == "there is no statement");
    CHECK(problem_of("") == "there is no statement");
    CHECK(problem_of(" -- nothing\n") == "there is no statement");
}

TEST_CASE("what has no end, and numbers instead of names, is a mistake", "[config]") {
    CHECK(problem_of("SELECT 'abc") == "a quote without an end");
    CHECK(problem_of("SELECT \"abc") == "a quote without an end");
    CHECK(problem_of("SELECT E'abc\\'") == "a quote without an end");
    CHECK(problem_of("SELECT /* /* */") == "a comment without an end");
    CHECK(problem_of("SELECT $tag$ x $tag") == "a dollar quote without an end");
    CHECK(problem_of("SELECT $1") == "a numbered parameter");
}
