// What a server may send, through our own reading, parsing, rules, listing and pages. Parts: a
// control line (tool, how the connection ends, sizes of the pieces), then one raw answer for each
// request. An unreadable answer never means succeeded; an incomplete or unreadable look-up never
// means absent; no answer makes us ask another host.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <deque>
#include <exception>
#include <memory>

#include "tests/fuzz/harness.hpp"
#include "tools/compiled_tool.hpp"
#include "tools/http_client_parser.hpp"
#include "tools/http_client_request.hpp"

namespace {

using fuzz::must;
using outbox::Json;
using State = tools::ResponseParser::State;

constexpr std::size_t kMaxBody = 2048;  // limits.response: small, so that cutting is tried too

// 0 and 1 page through a listing, 2 has one page, 3 describes a single resource by verdicts.
constexpr const char* kTools = R"(
  cursor:
    effect: write
    execute: { type: http, method: POST, url: "https://desk.example/t", json: { ref: "{{ operation.key }}" }, outcomes: [ { when: { status: 201 }, then: succeeded, result: { id: /id, at: "header:Location" } }, { when: { status: 202 }, then: accepted, result: /id }, { when: { status: 429 }, then: retry, retry_after: header }, { when: { status: [400, 422] }, then: rejected, code: /code, message: /message } ] }
    reconcile: { type: http, method: GET, url: "https://desk.example/t", query: { ref: "{{ operation.key }}" }, items: /items, match: { /ref: "{{ operation.key }}" }, must_equal: { /title: a }, result: { id: /id }, paginate: { from: "body:/next", to: "query:cursor", more: { /more: true }, max_pages: 3 } }
  link:
    effect: write
    execute: { type: http, method: POST, url: "https://desk.example/t", json: { ref: "{{ operation.key }}" }, outcomes: [ { when: { status: 200, body: { /ok: true } }, then: succeeded, result: /id }, { when: { header: { X-Retry: { exists: true } } }, then: retry, retry_after: "header:X-Retry" }, { when: { text: { matches: "^dup" } }, then: attention } ] }
    reconcile: { type: http, method: GET, url: "https://desk.example/t", query: { ref: "{{ operation.key }}" }, items: "", match: { /ref: "{{ operation.key }}" }, result: { id: /id }, paginate: { from: "header:link", to: url, max_pages: 3 } }
  page:
    effect: write
    execute: { type: http, method: POST, url: "https://desk.example/t", json: { ref: "{{ operation.key }}" } }
    reconcile: { type: http, method: GET, url: "https://desk.example/t", query: { ref: "{{ operation.key }}", limit: 2 }, items: /items, match: { /ref: "{{ operation.key }}" }, result: { id: /id } }
  single:
    effect: write
    execute: { type: http, method: PUT, url: "https://desk.example/t/{{ operation.key }}", json: { a: 1 }, outcomes: [ { when: { status: 2xx, body: { /state: { not: failed } } }, then: succeeded, result: "" } ] }
    reconcile: { type: http, method: GET, url: "https://desk.example/t/{{ operation.key }}", must_equal: { /title: a }, verdicts: [ { when: { status: 404, body: { /code: not_found } }, then: absent }, { when: { status: 200, body: { /state: processing } }, then: pending }, { when: { status: 200, body: { /state: { exists: true } } }, then: found, result: { id: /id } } ] }
)";

struct ReadAnswer {
    State state = State::more;
    tools::HttpResponse response;
    std::size_t used = 0;  // bytes that came before the end
    std::string problem;
};

// As the client reads: pieces as they arrive, then the end of the connection where it closes.
ReadAnswer read(std::string_view bytes, std::size_t piece, bool closes) {
    tools::ResponseParser parser(false, kMaxBody);
    ReadAnswer out;
    while (out.state == State::more && out.used < bytes.size()) {
        const auto room = parser.prepare();
        const auto size = std::min({piece, room.size(), bytes.size() - out.used});
        std::copy_n(bytes.data() + out.used, size, static_cast<char*>(room.data()));
        out.used += size;
        out.state = parser.commit(size);
    }
    if (out.state == State::more && closes && parser.begun()) out.state = parser.end();
    if (out.state == State::whole) out.response = parser.take();
    if (out.state == State::broken) {
        out.problem = parser.problem();
        must(!out.problem.empty(), "a broken answer says why");
    }
    return out;
}

// Whether nonsense is noticed at once or only when no more comes is not told apart.
bool same(const ReadAnswer& a, const ReadAnswer& b) {
    return (a.state == State::whole) == (b.state == State::whole) &&
           a.response.status == b.response.status && a.response.body == b.response.body &&
           a.response.headers == b.response.headers && a.response.truncated == b.response.truncated;
}

// How the network cuts an answer into pieces must not change it; where it ends by itself, a part
// of it is never taken for the whole.
ReadAnswer read_checked(std::string_view bytes, std::size_t piece, bool closes) {
    const auto answer = read(bytes, piece, closes);
    must(same(answer, read(bytes, 1, closes)), "byte by byte the same answer", bytes);
    must(same(answer, read(bytes, bytes.size() + 1, closes)), "at once the same answer", bytes);
    must(answer.response.body.size() <= kMaxBody, "limits.response", bytes);
    const auto open = read(bytes, 1, false);
    if (open.state == State::whole && !open.response.truncated) {
        for (const auto part : {open.used - 1, open.used / 2}) {
            const auto cut = read(bytes.substr(0, part), piece, true);
            must(cut.state != State::whole, "a part is no whole answer", bytes.substr(0, part));
        }
    }
    return answer;
}

// Hands the answers out in order, as the client would.
class Server final : public tools::HttpSender {
 public:
    void reset(std::vector<std::string_view> answers, std::string_view control) {
        answers_ = std::move(answers);
        control_ = control;
        next_ = 0;
        last = {};
        all_whole = true;
    }

    boost::asio::awaitable<tools::HttpResult> send(tools::HttpRequest request, outbox::Deadline)
        override {
        must(request.origin == tools::Origin{true, "desk.example", 443}, "the host is the file's");
        const auto problem = tools::check_request(request);
        must(!problem, "what is asked can be sent", problem.value_or("") + request.target);
        const bool closes = fuzz::choice(control_, 1, 2) == 1;
        const std::size_t piece = 1 + fuzz::choice(control_, 2, 250);
        const auto bytes = next_ < answers_.size() ? answers_[next_] : std::string_view{};
        ++next_;
        last = read_checked(bytes, piece, closes);
        all_whole = all_whole && last.state == State::whole && !last.response.truncated;
        if (last.state == State::whole) co_return last.response;
        auto cause = outbox::Cause::timeout;
        if (last.state == State::broken) cause = outbox::Cause::unreadable;
        co_return tools::HttpFailure{true, cause, {"lost", "as the input says"}};
    }

    ReadAnswer last;
    bool all_whole = true;

 private:
    std::vector<std::string_view> answers_;
    std::string_view control_;
    std::size_t next_ = 0;
};

// One tool of kTools over that server.
struct Tool {
    std::shared_ptr<Server> server = std::make_shared<Server>();
    std::unique_ptr<tools::HttpAction> action;
    std::unique_ptr<tools::HttpProbe> probe;
};

std::vector<Tool> compile_tools() {
    const auto config = fuzz::configuration(kTools);
    std::vector<Tool> all;
    for (const auto& from : config.tools) {
        config::Diagnostics diagnostics;
        auto compiled = tools::compile_tool(from, config, diagnostics);
        Tool tool;
        tool.action = std::make_unique<tools::HttpAction>(
            std::move(std::get<tools::HttpExecute>(compiled->execute)), tool.server
        );
        tool.probe = std::make_unique<tools::HttpProbe>(
            std::move(std::get<tools::HttpLookup>(*compiled->lookup)), tool.server
        );
        all.push_back(std::move(tool));
    }
    return all;
}

template <class T>
T run(boost::asio::awaitable<T> task) {
    static boost::asio::io_context io{1};
    std::optional<T> result;
    std::exception_ptr error;
    boost::asio::co_spawn(io, std::move(task), [&](std::exception_ptr e, T value) {
        error = std::move(e);
        result = std::move(value);
    });
    io.restart();
    io.run();
    if (error) std::rethrow_exception(error);
    must(result.has_value(), "the call ends");
    return std::move(*result);
}

bool readable(const ReadAnswer& answer) {
    return answer.state == State::whole && !answer.response.truncated &&
           outbox::parse_foreign_json(answer.response.body).value;
}

const Json* member(const std::optional<Json>& body, std::string_view pointer) {
    return body ? body->at_pointer(pointer) : nullptr;
}

bool is_true(const Json* value) {
    return value != nullptr && value->as_bool() != nullptr && *value->as_bool();
}

void check_outcome(unsigned tool, const outbox::Outcome& outcome, const Server& server) {
    const auto& last = server.last;
    const int status = last.response.status;
    const auto body = outbox::parse_foreign_json(last.response.body).value;
    if (last.state != State::whole) {
        must(outcome_name(outcome) == "unknown", "no whole answer is unknown");
        return;
    }
    if (const auto* it = std::get_if<outbox::Succeeded>(&outcome)) {
        fuzz::check_storable(it->result);
        if (tool == 0) must(status == 201, "201 and nothing else succeeds here");
        if (tool == 1) {
            must(status == 200 && readable(last), "succeeded out of an unreadable answer");
            must(is_true(member(body, "/ok")), "succeeded although it does not say so");
        }
        if (tool >= 2) must(status >= 200 && status < 300, "succeeded without 2xx");
        if (tool == 3) {
            must(
                readable(last) || last.response.body.empty(), "succeeded out of what is unreadable"
            );
        }
    } else if (const auto* accepted = std::get_if<outbox::Accepted>(&outcome)) {
        must(tool == 0 && status == 202, "202 is accepted");
        fuzz::check_storable(accepted->result);
    } else if (const auto* rejected = std::get_if<outbox::Rejected>(&outcome)) {
        must(status >= 300 && status < 500, "rejected means no effect");
        fuzz::check_storable(Json(rejected->error.message));
        fuzz::check_storable(Json(rejected->error.code));
    } else if (const auto* later = std::get_if<outbox::RetryLater>(&outcome)) {
        const auto* named = tool == 1 ? "X-Retry" : nullptr;
        const bool told = named != nullptr && last.response.header(named);
        must(status == 429 || status == 401 || told, "a retry means no effect");
        must(!later->after || later->after->count() >= 0, "no wait is negative");
    }
}

void check_verdict(unsigned tool, const outbox::Verdict& verdict, const Server& server) {
    const auto& last = server.last;
    const int status = last.response.status;
    const auto body = outbox::parse_foreign_json(last.response.body).value;
    if (const auto* it = std::get_if<outbox::Found>(&verdict)) fuzz::check_storable(it->result);
    if (!std::holds_alternative<outbox::Absent>(verdict)) return;
    must(server.all_whole && readable(last), "absent out of an unreadable answer");
    if (tool == 3) {
        must(status == 404, "absent without its verdict");
        return;
    }
    must(status == 200, "absent out of a look-up that failed");
    const auto* items = tool == 1 ? (body ? &*body : nullptr) : member(body, "/items");
    must(items != nullptr && items->as_array() != nullptr, "absent without a listing");
    for (const auto& item : *items->as_array()) {
        const auto* ref = item.at_pointer("/ref");
        const bool ours = ref && ref->as_string() && *ref->as_string() == fuzz::kProviderKey;
        must(!ours, "absent although it is there");
    }
    if (tool == 0) must(!is_true(member(body, "/more")), "absent although there is more");
    if (tool == 2) must(items->as_array()->size() < 2, "absent on a page that is full");
}

}  // namespace

void fuzz::run_input(std::string_view input) {
    static const auto kCompiled = compile_tools();
    auto parts = parts_of(input, 2);
    const auto control = parts[0];
    parts.erase(parts.begin());
    const auto which = choice(control, 0, 4);
    const auto& tool = kCompiled[which];
    const auto call = call_with({});
    const auto deadline = outbox::Deadline::after(std::chrono::hours(1));

    tool.server->reset(parts, control);
    check_outcome(which, run(tool.action->perform(call, deadline)), *tool.server);
    tool.server->reset(parts, control);
    check_verdict(which, run(tool.probe->ask(call, deadline)), *tool.server);
}
