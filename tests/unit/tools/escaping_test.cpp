// Hostile arguments in every place a template can stand: refused before anything is sent, or
// neutral. Each place below meets each attack of kHostile (line ends, NUL, paths, encoded paths,
// quotes, templates, shell, markup, separators, options, 1 MB) and a deep object:
//
//   place                 | an attack is
//   ----------------------|-----------------------------------------------------------------
//   scheme, host, port    | impossible: no template can stand there
//   path segment          | percent-encoded; empty, . and .. refused
//   query, of both phases | percent-encoded, in its member
//   header                | refused with control characters, else one line
//   json                  | a value of its type
//   form, multipart       | encoded, in its member or part
//   text, stdin           | escaped as the template names, or raw because it says so
//   argv, env             | handed to execve as it is; NUL and a leading dash refused
//   sql parameter         | beside the statement; NUL refused
//   match, must_equal,    | compared as a value, never read as a condition, a pattern or a
//   verdicts              | template
//   next page             | the same origin and the file's path
#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/command_template.hpp"
#include "tools/form.hpp"
#include "tools/http_client_request.hpp"

using namespace test;

namespace {

const std::string kReconcile = "    reconcile: { type: manual, reason: a test }\n";

// One request with the argument x, or why it was refused.
struct Sent {
    std::optional<tools::HttpRequest> request;
    std::string refused;
};

Sent send(const std::string& execute, const Json& x) {
    const auto config = configuration(
        "  tool:\n    execute: { type: http, method: POST, " + execute + " }\n" + kReconcile
    );
    config::Diagnostics diagnostics;
    auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
    INFO(execute << "\n" << all_of(diagnostics));
    REQUIRE_FALSE(diagnostics.has_errors());
    const auto call = call_of(Json(Json::Object{{"x", x}}));
    const auto rendered = std::get<tools::HttpExecute>(compiled->execute).request.render({call});
    if (!rendered.ok()) return {std::nullopt, rendered.error().code};
    return {rendered.value(), {}};
}

const std::vector<std::string> kHostile = {
    "a\r\nX-Evil: 1",
    "a\nb",
    "a\rb",
    std::string("a\0b", 3),
    "../../admin",
    "..%2f..%2fadmin",
    "..",
    ".",
    "/etc/passwd",
    "a\"b'c\\d",
    "{{ operation.key }}",
    "${env:HOME}",
    "<script>&</script>",
    "a&b=c",
    "a;b,c",
    "-rf",
    "--help",
    "$(id)`id`;id",
    "\x7f\x01",
    "%00",
    "a]b[c",
    "\xc3\xbc\xf0\x9f\x98\x80",
    std::string(1'000'000, 'x')
};

Json deep_object() {
    Json value("x");
    for (int i = 0; i < 400; ++i) value = Json(Json::Object{{"d", std::move(value)}});
    return value;
}

// One line of HTTP stays one line.
void check_line(const std::string& text) {
    for (const char c : text) CHECK_FALSE((c == '\r' || c == '\n' || c == '\0'));
}

}  // namespace

TEST_CASE("hostile values in a path segment") {
    const auto normal = send("url: 'https://h.example/t/{{ arguments.x }}/end'", Json("a"));
    CHECK(normal.request->target == "/t/a/end");
    for (const auto& value : kHostile) {
        const auto sent = send("url: 'https://h.example/t/{{ arguments.x }}/end'", Json(value));
        if (value == "." || value == "..") {
            CHECK(sent.refused == "invalid_argument");
            continue;
        }
        REQUIRE(sent.request.has_value());
        const auto& target = sent.request->target;
        check_line(target.substr(0, 100));
        CHECK(target.rfind("/t/", 0) == 0);
        CHECK(std::count(target.begin(), target.end(), '/') == 3);
        CHECK(target.find_first_of("?# \"<>{}") == std::string::npos);
    }
    CHECK(
        send("url: 'https://h.example/t/{{ arguments.x }}/end'", deep_object()).refused ==
        "invalid_argument"
    );
}

TEST_CASE("hostile values in the query") {
    for (const auto& value : kHostile) {
        const auto sent = send(
            "url: 'https://h.example/t?q={{ arguments.x }}', query: { r: '{{ arguments.x }}', s: 1 "
            "}",
            Json(value)
        );
        REQUIRE(sent.request.has_value());
        const auto& target = sent.request->target;
        CHECK(std::count(target.begin(), target.end(), '&') == 2);
        CHECK(std::count(target.begin(), target.end(), '=') == 3);
        CHECK(target.find_first_of("# \"<>{}\r\n") == std::string::npos);
    }
    CHECK(
        send("url: 'https://h.example/', query: { r: '{{ arguments.x }}' }", deep_object())
            .refused == "invalid_argument"
    );
}

TEST_CASE("hostile values in a header are refused or one line") {
    for (const auto& value : kHostile) {
        const auto sent = send(
            "url: 'https://h.example/', headers: { X-Title: 't {{ arguments.x }}' }", Json(value)
        );
        const bool control =
            value.find_first_of(std::string("\r\n\0\x01\x7f", 5)) != std::string::npos;
        CHECK(sent.refused == (control ? "invalid_argument" : ""));
        if (!control)
            CHECK(
                sent.request->headers.front() ==
                std::pair<std::string, std::string>{"X-Title", "t " + value}
            );
    }
}

TEST_CASE("hostile values in JSON are values") {
    for (const auto& value : kHostile) {
        const auto sent = send(
            "url: 'https://h.example/', json: { a: '{{ arguments.x }}', b: 'b{{ arguments.x }}' }",
            Json(value)
        );
        REQUIRE(sent.request.has_value());
        const auto body = json(sent.request->body);
        REQUIRE(body.as_object()->size() == 2);
        CHECK(*body.find("a")->as_string() == value);
        CHECK(*body.find("b")->as_string() == "b" + value);
    }
    const auto sent =
        send("url: 'https://h.example/', json: { a: '{{ arguments.x }}' }", deep_object());
    REQUIRE(sent.request.has_value());
    CHECK(json(sent.request->body).find("a")->equals(deep_object()));
}

TEST_CASE("hostile values in a form stay in their member") {
    for (const auto& value : kHostile) {
        const auto sent = send(
            "url: 'https://h.example/', form: { a: { b: ['{{ arguments.x }}', 2] }, c: '{{ "
            "arguments.x }}' }",
            Json(value)
        );
        REQUIRE(sent.request.has_value());
        const auto& body = sent.request->body;
        CHECK(body.rfind("a%5Bb%5D%5B0%5D=", 0) == 0);
        CHECK(std::count(body.begin(), body.end(), '&') == 2);
        CHECK(body.find_first_of("\r\n \"<>{}") == std::string::npos);
    }
    // Names from an argument may not pose as another member.
    const auto evil =
        send("url: 'https://h.example/', form: { m: '{{ arguments.x }}' }", json(R"({"a][b": 1})"));
    CHECK(evil.refused == "invalid_argument");
    const auto nested = send(
        "url: 'https://h.example/', form: { m: '{{ arguments.x }}' }",
        json(R"({"a&b": {"c": [1, null, "d e"]}})")
    );
    CHECK(nested.request->body == "m%5Ba%26b%5D%5Bc%5D%5B0%5D=1&m%5Ba%26b%5D%5Bc%5D%5B2%5D=d%20e");
}

TEST_CASE("hostile values in a multipart body stay in their part") {
    // Splits the body at its boundary as a receiver does; each part with its head.
    const auto parts = [](const tools::HttpRequest& request) {
        std::string type;
        for (const auto& [name, value] : request.headers) {
            if (name == "Content-Type") type = value;
        }
        const std::string kType = "multipart/form-data; boundary=";
        REQUIRE(type.rfind(kType, 0) == 0);
        const auto line = "--" + type.substr(kType.size());
        std::vector<std::string> out;
        const auto& body = request.body;
        REQUIRE(body.rfind(line + "\r\n", 0) == 0);
        REQUIRE(body.ends_with("\r\n" + line + "--\r\n"));
        for (std::size_t at = line.size() + 2; at < body.size();) {
            const auto end = body.find("\r\n" + line, at);
            REQUIRE(end != std::string::npos);
            out.push_back(body.substr(at, end - at));
            at = end + 2 + line.size() + 2;
            if (body.compare(at - 2, 2, "--") == 0) break;
        }
        return out;
    };
    auto hostile = kHostile;
    hostile.emplace_back("\r\n--outboxd-\r\nContent-Disposition: form-data; name=\"evil\"\r\n\r\nx"
    );
    hostile.emplace_back("a\"; filename=\"evil.sh");
    for (const auto& value : hostile) {
        const auto sent = send(
            "url: 'https://h.example/', multipart: { a: '{{ arguments.x }}', b: ['{{ arguments.x "
            "}}', 2], c: { filename: a.txt, text: '{{ arguments.x | raw }}' }, d: { json: { e: '{{ "
            "arguments.x }}' } } }",
            Json(value)
        );
        REQUIRE(sent.request.has_value());
        const auto found = parts(*sent.request);
        REQUIRE(found.size() == 5);
        const std::string kField = "Content-Disposition: form-data; name=";
        CHECK(found[0] == kField + "\"a\"\r\n\r\n" + value);
        CHECK(found[1] == kField + "\"b\"\r\n\r\n" + value);
        CHECK(found[2] == kField + "\"b\"\r\n\r\n2");
        CHECK(
            found[3] == kField +
                            "\"c\"; filename=\"a.txt\"\r\nContent-Type: text/plain; "
                            "charset=utf-8\r\n\r\n" +
                            value
        );
        // The same operation gives the same bytes: providers compare them under one key.
        const auto again =
            send("url: 'https://h.example/', multipart: { a: '{{ arguments.x }}' }", Json(value));
        const auto once_more =
            send("url: 'https://h.example/', multipart: { a: '{{ arguments.x }}' }", Json(value));
        CHECK(again.request->body == once_more.request->body);
    }
    const auto named = [](const Json& x) {
        return send(
            "url: 'https://h.example/', multipart: { f: { filename: '{{ arguments.x }}', text: a } "
            "}",
            x
        );
    };
    for (const auto& value : hostile) {
        const auto sent = named(Json(value));
        const bool path = value.find_first_of("/\\") != std::string::npos;
        const bool control = value.find_first_of(std::string("\0\x01\x7f", 3)) != std::string::npos;
        if (path || control || value == "." || value == "..") {
            CHECK(sent.refused == "invalid_argument");
            continue;
        }
        const auto found = parts(*sent.request);
        REQUIRE(found.size() == 1);
        // One line of head, with one name and one file name in quotes.
        const auto head = found[0].substr(0, found[0].find("\r\n"));
        CHECK(std::count(head.begin(), head.end(), '"') == 4);
        check_line(head.substr(0, 200));
    }
    CHECK(named(Json("")).refused == "invalid_argument");
    CHECK(named(deep_object()).refused == "invalid_argument");
    const auto typed = send(
        "url: 'https://h.example/', multipart: { f: { content_type: '{{ arguments.x }}', text: a } "
        "}",
        Json("text/plain\r\nX-Evil: 1")
    );
    CHECK(typed.refused == "invalid_argument");
    CHECK(
        send("url: 'https://h.example/', multipart: { a: '{{ arguments.x }}' }", deep_object())
            .refused == "invalid_argument"
    );
    const auto binary = send(
        "url: 'https://h.example/', multipart: { f: { base64: '{{ arguments.x }}' } }", Json("AAH/")
    );
    CHECK(parts(*binary.request)[0].ends_with(std::string("\r\n\r\n\0\x01\xff", 7)));
    CHECK(
        send(
            "url: 'https://h.example/', multipart: { f: { base64: '{{ arguments.x }}' } }",
            Json("{{")
        )
            .refused == "invalid_argument"
    );
}

TEST_CASE("hostile values beside a credential in the query, and behind a proxy") {
    const std::string kRest =
        "credentials: { q: { kind: query, name: token, value: 's3cret&x=1#' } }\n"
        "defaults: { http: { proxy: 'http://u:p%40ss@proxy.example:3128' } }";
    for (const auto& value : kHostile) {
        if (value.find('\0') != std::string::npos) continue;  // jsonb holds none
        HttpToolFixture fixture(
            "    execute: { type: http, method: POST, url: 'https://h.example/t', credential: q, "
            "query: { a: '{{ arguments.x }}' }, headers: { X-A: a }, json: { a: '{{ arguments.x "
            "}}' } }\n" +
                kReconcile,
            kRest
        );
        fixture.sender->answer(200);
        (void)fixture.perform(outbox::to_text(Json(Json::Object{{"x", Json(value)}})));
        REQUIRE(fixture.sender->requests.size() == 1);
        const auto& request = fixture.sender->requests[0];
        CHECK(request.target.ends_with("&token=s3cret%26x%3D1%23"));
        CHECK(std::count(request.target.begin(), request.target.end(), '&') == 1);
        CHECK(request.origin == tools::Origin{true, "h.example", 443});
        // What goes to the proxy is made of the file's own words and an encoded target.
        const tools::HttpProxy proxy{.host = "p", .port = 1, .authorization = "Basic x"};
        CHECK(
            tools::connect_head(request.origin, proxy) ==
            "CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\nUser-Agent: outboxd\r\n"
            "Proxy-Authorization: Basic x\r\n\r\n"
        );
        const auto head = tools::request_head(request, &proxy);
        CHECK(head.rfind("POST http://h.example/t?a=", 0) == 0);
        // Request line, six headers and an empty line: an argument adds none.
        CHECK(std::count(head.begin(), head.end(), '\n') == 10);
    }
}

TEST_CASE("hostile values in text keep to the escaping they name") {
    const auto ical = [](const std::string& value) {
        return send(
            "url: 'https://h.example/', newline: crlf, text: \"BEGIN:X\\nSUMMARY:{{ arguments.x | "
            "ical_text }}\\nEND:X\\n\"",
            Json(value)
        );
    };
    CHECK(
        ical("a\r\nATTENDEE:evil").request->body ==
        "BEGIN:X\r\nSUMMARY:a\\nATTENDEE:evil\r\nEND:X\r\n"
    );
    CHECK(ical("a\x01").refused == "invalid_argument");
    for (const auto& value : kHostile) {
        const auto sent = ical(value);
        if (sent.request)
            CHECK(std::count(sent.request->body.begin(), sent.request->body.end(), '\n') == 3);
    }
    const auto xml = send(
        "url: 'https://h.example/', text: '<a b=\"{{ arguments.x | xml }}\"/>'", Json("\"><evil/>")
    );
    CHECK(xml.request->body == "<a b=\"&quot;&gt;&lt;evil/&gt;\"/>");
    const auto as_json = send(
        "url: 'https://h.example/', text: '{\"a\": {{ arguments.x | json }}}'", Json("\",\"b\":\"")
    );
    CHECK(json(as_json.request->body).as_object()->size() == 1);
    const auto optional =
        send("url: 'https://h.example/', text: 'a{{ arguments.y | optional | xml }}b'", Json("x"));
    CHECK(optional.request->body == "ab");
}

TEST_CASE("hostile values in argv, environment and standard input") {
    const auto render = [](const std::string& command, const std::string& value) {
        const auto config = configuration(
            "  tool:\n    execute: { type: command, " + command + " }\n" + kReconcile
        );
        config::Diagnostics diagnostics;
        auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
        REQUIRE_FALSE(diagnostics.has_errors());
        const auto call = call_of(Json(Json::Object{{"x", Json(value)}}));
        return std::get<tools::CommandExecute>(compiled->execute).command.render({call});
    };
    for (const auto& value : kHostile) {
        const auto spec = render(
            "argv: [prog, '{{ arguments.x }}', 'x={{ arguments.x }}'], env: { A: '{{ arguments.x "
            "}}' }",
            value
        );
        const bool nul = value.find('\0') != std::string::npos;
        if (nul || value[0] == '-') {
            REQUIRE_FALSE(spec.ok());
            CHECK(spec.error().code == "invalid_argument");
            continue;
        }
        REQUIRE(spec.ok());
        CHECK(spec.value().argv == std::vector<std::string>{"prog", value, "x=" + value});
        CHECK(spec.value().environment.front() == "A=" + value);
    }
    // A dash that the file put there itself, or that it allows, is meant.
    CHECK(render("argv: [prog, '-t{{ arguments.x }}']", "-x").value().argv[1] == "-t-x");
    CHECK(
        render("argv: [prog, '{{ arguments.x }}'], allow_dash: true", "-x").value().argv[1] == "-x"
    );
    CHECK(
        render("argv: [prog, '{{ arguments.y | optional }}', b]", "x").value().argv ==
        std::vector<std::string>{"prog", "b"}
    );
    CHECK(
        render("argv: [prog], stdin: '{{ arguments.x | json }}'", "a\"b").value().input ==
        "\"a\\\"b\""
    );
}

TEST_CASE("no template can stand where a request goes to") {
    for (const auto* url :
         {"https://{{ arguments.x }}/t",
          "https://{{ arguments.x }}.example/t",
          "https://h.example:{{ arguments.x }}/t",
          "{{ arguments.x }}://h.example/t",
          "{{ arguments.x }}",
          "https://{{ arguments.x }}@h.example/t"}) {
        CAPTURE(url);
        // Whether the loader or the compiler refuses it: no tool comes of it.
        CHECK_FALSE(compiles(
            "  tool:\n    execute: { type: http, method: POST, url: '" + std::string(url) +
            "' }\n" + kReconcile
        ));
    }
    CHECK(compiles(
        "  tool:\n    execute: { type: http, method: POST, url: 'https://h.example/t' }\n" +
        kReconcile
    ));
}

TEST_CASE("hostile values in standard input keep to the escaping they name") {
    const auto input = [](const std::string& stdin_text, const Json& x) {
        const auto config = configuration(
            "  tool:\n    execute: { type: command, argv: [prog], stdin: '" + stdin_text + "' }\n" +
            kReconcile
        );
        config::Diagnostics diagnostics;
        auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
        REQUIRE_FALSE(diagnostics.has_errors());
        const auto call = call_of(Json(Json::Object{{"x", x}}));
        return std::get<tools::CommandExecute>(compiled->execute).command.render({call});
    };
    for (const auto& value : kHostile) {
        const auto spec = input("{\"a\": {{ arguments.x | json }}, \"b\": 1}", Json(value));
        REQUIRE(spec.ok());
        const auto read = json(spec.value().input);
        REQUIRE(read.as_object()->size() == 2);
        CHECK(*read.find("a")->as_string() == value);
        CHECK(spec.value().argv == std::vector<std::string>{"prog"});
        const auto raw = input("{{ arguments.x | raw }}", Json(value));
        REQUIRE(raw.ok());
        CHECK(raw.value().input == value);
    }
    const auto deep = input("{{ arguments.x | json }}", deep_object());
    REQUIRE(deep.ok());
    CHECK(json(deep.value().input).equals(deep_object()));
}

TEST_CASE("a deep object is no text: refused in headers, argv and variables") {
    CHECK(
        send("url: 'https://h.example/', headers: { X-A: '{{ arguments.x }}' }", deep_object())
            .refused == "invalid_argument"
    );
    for (const auto* members :
         {"argv: [prog, '{{ arguments.x }}']", "argv: [prog], env: { A: '{{ arguments.x }}' }"}) {
        const auto config = configuration(
            "  tool:\n    execute: { type: command, " + std::string(members) + " }\n" + kReconcile
        );
        config::Diagnostics diagnostics;
        auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
        REQUIRE_FALSE(diagnostics.has_errors());
        const auto call = call_of(Json(Json::Object{{"x", deep_object()}}));
        const auto spec = std::get<tools::CommandExecute>(compiled->execute).command.render({call});
        REQUIRE_FALSE(spec.ok());
        CHECK(spec.error().code == "invalid_argument");
    }
}

TEST_CASE("hostile values in sql parameters stay beside the statement") {
    const std::string kMembers =
        "  tool:\n"
        "    execute: { type: sql, dsn: 'host=a', statement: \"INSERT INTO t VALUES (:a, :b)\", "
        "parameters: { a: '{{ arguments.x }}', b: 'b{{ arguments.x | optional }}' } }\n"
        "    reconcile: { type: sql, dsn: 'host=a', statement: \"SELECT FROM t WHERE a = :a\", "
        "parameters: { a: '{{ arguments.x }}' }, verdicts: [ { when: { rows: 1 }, then: found } ] "
        "}\n";
    const auto config = configuration(kMembers);
    config::Diagnostics diagnostics;
    auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
    INFO(all_of(diagnostics));
    REQUIRE_FALSE(diagnostics.has_errors());
    const auto& execute = std::get<tools::SqlExecute>(compiled->execute).sql;
    const auto& look_up = std::get<tools::SqlLookup>(*compiled->lookup).sql;
    const auto deadline = outbox::Deadline::after(5s);
    for (const auto& value : kHostile) {
        const auto call = call_of(Json(Json::Object{{"x", Json(value)}}));
        const auto sent = execute.render({call}, deadline);
        const auto asked = look_up.render({call}, deadline);
        if (value.find('\0') != std::string::npos) {
            CHECK(sent.error().code == "invalid_argument");
            CHECK(asked.error().code == "invalid_argument");
            continue;
        }
        REQUIRE(sent.ok());
        CHECK(sent.value().statement == "INSERT INTO t VALUES ($1, $2)");
        REQUIRE(sent.value().parameters.size() == 2);
        CHECK(sent.value().parameters[0] == value);
        CHECK(sent.value().parameters[1] == "b" + value);
        REQUIRE(asked.ok());
        CHECK(asked.value().statement == "SELECT FROM t WHERE a = $1");
        CHECK(asked.value().parameters[0] == value);
    }
    const auto deep = call_of(Json(Json::Object{{"x", deep_object()}}));
    CHECK(execute.render({deep}, deadline).error().code == "invalid_argument");  // b is a text
    CHECK(json(*look_up.render({deep}, deadline).value().parameters[0]).equals(deep_object()));
}

// What is looked for is compared as a value: it can neither match more nor less than itself.
TEST_CASE("hostile values in a look-up: in its request, and as what is looked for") {
    const std::string kTool =
        "    execute: { type: http, method: POST, url: 'https://h.example/t' }\n"
        "    reconcile: { type: http, url: 'https://h.example/t', query: { ref: '{{ arguments.x "
        "}}' "
        "}, items: /items, match: { /ref: '{{ arguments.x }}' }, must_equal: { /title: '{{ "
        "arguments.x }}' }, paginate: { from: 'body:/next', to: 'query:cursor', max_pages: 3 } }\n";
    const auto item = [](const std::string& ref, const std::string& title) {
        return Json(Json::Object{{"ref", Json(ref)}, {"title", Json(title)}});
    };
    const auto page = [](Json::Array items, const std::string& next) {
        Json answer;
        answer.set("items", Json(std::move(items)));
        if (!next.empty()) answer.set("next", Json(next));
        return outbox::to_text(answer);
    };
    for (const auto& value : kHostile) {
        const auto arguments = outbox::to_text(Json(Json::Object{{"x", Json(value)}}));
        HttpToolFixture found(kTool);
        // A cursor is the other side's word: as hostile as the argument.
        found.sender->answer(200, page({item("other", "x"), item(value + " ", "x")}, value));
        found.sender->answer(200, page({item(value, value)}, ""));
        (void)get<outbox::Found>(found.ask(arguments));
        REQUIRE(found.sender->requests.size() == 2);
        for (const auto& request : found.sender->requests) {
            CHECK(request.origin == tools::Origin{true, "h.example", 443});
            CHECK(request.target.rfind("/t?ref=", 0) == 0);
            CHECK(std::count(request.target.begin(), request.target.end(), '/') == 1);
            CHECK(request.target.find_first_of("# \"<>{}\r\n") == std::string::npos);
        }
        HttpToolFixture other(kTool);
        other.sender->answer(200, page({item(value, "another title")}, ""));
        (void)get<outbox::Conflict>(other.ask(arguments));
        HttpToolFixture absent(kTool);
        absent.sender->answer(200, page({item("x", value)}, ""));
        (void)get<outbox::Absent>(absent.ask(arguments));
    }
}

TEST_CASE("hostile values in the verdicts' own conditions are no conditions") {
    const std::string kTool =
        "    execute: { type: http, method: POST, url: 'https://h.example/t' }\n"
        "    reconcile: { type: http, url: 'https://h.example/t', verdicts: [ { when: { status: "
        "200, body: { /ref: '{{ arguments.x }}' } }, then: found }, { when: { status: 200, text: { "
        "contains: '{{ arguments.x }}' } }, then: pending } ] }\n";
    for (const std::string value : {".*", "^", "$", "[", "{ exists: true }", "{{ arguments.x }}"}) {
        const auto arguments = outbox::to_text(Json(Json::Object{{"x", Json(value)}}));
        HttpToolFixture tool(kTool);
        tool.sender->answer(200, R"({"ref": "anything"})");
        (void)get<outbox::Inconclusive>(tool.ask(arguments));
        Json same;
        same.set("ref", Json(value));
        tool.sender->answer(200, outbox::to_text(same));
        (void)get<outbox::Found>(tool.ask(arguments));
    }
    // An object is not a condition either.
    HttpToolFixture tool(kTool);
    tool.sender->answer(200, R"({"ref": "anything"})");
    const auto verdict = tool.ask(R"({"x": {"exists": true}})");
    CHECK_FALSE(std::holds_alternative<outbox::Found>(verdict));
}
