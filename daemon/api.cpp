#include "daemon/api.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include "config/without_secrets.hpp"
#include "daemon/api_request.hpp"
#include "daemon/api_steering.hpp"
#include "daemon/api_story.hpp"
#include "daemon/output.hpp"
#include "outbox/pg/browse.hpp"
#include "outbox/pg/client.hpp"
#include "outbox/pg/pg_error.hpp"

namespace outboxd {

namespace {

constexpr int kMostEvents = 500;
constexpr int kStatsShare = 10;  // of the time, one part at most goes into counting

ServerResponse json(std::string body) {
    ServerResponse response;
    response.body = std::move(body);
    return response;
}

[[noreturn]] void nothing_here() {
    throw ApiProblem(404, "Not found", "There is nothing at this path.");
}

// OB404 → 404; what else the server may say about what was asked.
int status_of(const std::string& sqlstate) {
    if (sqlstate.size() == 5 && sqlstate.starts_with("OB")) {
        int status = 0;
        std::from_chars(sqlstate.data() + 2, sqlstate.data() + 5, status);
        return status >= 400 && status < 500 ? status : 500;
    }
    if (sqlstate == "42501") return 403;
    if (sqlstate.starts_with("22")) return 400;
    const bool later = sqlstate == "57014" || sqlstate == "55P03" || sqlstate.starts_with("40");
    return later ? 503 : 500;
}

ServerResponse refused(const outbox::pg::SqlError& error) {
    ApiProblem::Members members{{"sqlstate", error.sqlstate()}};
    if (!error.detail().empty()) members.emplace_back("reason", error.detail());
    if (!error.hint().empty()) members.emplace_back("hint", error.hint());
    const int status = status_of(error.sqlstate());
    const auto* title = status == 503 ? "Not now" : status == 500 ? "Database error" : "Refused";
    return ApiProblem(status, title, error.message(), std::move(members)).response();
}

ServerResponse unreachable(const outbox::StoreError& error) {
    using Kind = outbox::StoreError::Kind;
    if (error.kind() == Kind::in_doubt) {
        return ApiProblem(
                   503,
                   "In doubt",
                   "The database did not say in time whether it was done. Look before repeating it."
        )
            .response();
    }
    const int status =
        error.kind() == Kind::unavailable || error.kind() == Kind::conflict ? 503 : 500;
    return ApiProblem(status, "No database", error.what()).response();
}

// The receipt but for what the other side said, which redact: may hide.
ServerResponse compensated(const std::string& id, const std::string& text) {
    const auto receipt = row_of(text);
    const auto status = member_text(receipt, "status");
    const auto replayed = receipt.find("replayed");
    const bool again = replayed != nullptr && replayed->as_bool() && *replayed->as_bool();
    // About the original itself: cancelled by this call, or there was nothing to undo before it.
    if (member_text(receipt, "operation_id") == id && again) {
        ApiProblem::Members members{
            {"answer", "nothing_to_compensate"}, {"operation_status", status}
        };
        return ApiProblem(
                   409, "Refused", "There is nothing to undo: it is " + status + ".", members
        )
            .response();
    }
    outbox::Json shown;
    for (const auto* name : {"operation_id", "status", "replayed", "created_at"}) {
        const auto* member = receipt.find(name);
        shown.set(name, member == nullptr ? outbox::Json() : *member);
    }
    return json(outbox::to_text(shown));
}

// Everything a handler may throw, as the answer that it is.
ServerResponse problem_of(const std::exception_ptr& thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const ApiProblem& problem) {
        return problem.response();
    } catch (const outbox::pg::SqlError& error) {
        return refused(error);
    } catch (const outbox::StoreError& error) {
        return unreachable(error);
    }
}

}  // namespace

Api::Api(asio::any_io_executor executor, const std::string& dsn, const config::Config& config)
    : reading_(executor, dsn, ApiDatabase::Late::unavailable),
      steering_(executor, dsn, ApiDatabase::Late::in_doubt) {
    use(config);
}

void Api::use(const config::Config& config) {
    config_ = std::make_shared<const config::Config>(config::without_secrets(config));
}

void Api::serve_on(AdminServer& server) {
    server.add({"GET", "/api/v1/", Access::read, [this](ServerRequest request) {
                    return get(std::move(request));
                }});
    server.add({"POST", "/api/v1/", Access::write, [this](ServerRequest request) {
                    return post(std::move(request));
                }});
}

asio::awaitable<ServerResponse> Api::get(ServerRequest request) {
    std::exception_ptr thrown;
    try {
        const auto path = api_path(request.path);
        auto reading = read(request, path);
        co_return co_await std::move(reading);
    } catch (...) {
        thrown = std::current_exception();
    }
    co_return problem_of(thrown);
}

asio::awaitable<ServerResponse> Api::read(const ServerRequest& request, const Path& path) {
    using outbox::pg::Session;
    if (path.size() == 1 && path[0] == "operations") {
        auto listing = list(request);
        co_return co_await std::move(listing);
    }
    refuse_query(request);
    if (path.size() == 2 && path[0] == "operations" && !path[1].empty()) {
        auto telling = story(path[1]);
        co_return co_await std::move(telling);
    }
    if (path.size() != 1) nothing_here();
    if (path[0] == "stats") {
        auto counting = stats();
        co_return co_await std::move(counting);
    }
    if (path[0] != "tools" && path[0] != "workers") nothing_here();
    const bool tools = path[0] == "tools";
    auto asking = reading_.run([tools](Session& session) {
        outbox::pg::Client client(session);
        return outbox::to_text(api_items(tools ? client.tools() : client.workers()));
    });
    co_return json(co_await std::move(asking));
}

asio::awaitable<ServerResponse> Api::list(const ServerRequest& request) {
    auto filter = read_list_query(request);
    const auto limit = static_cast<std::size_t>(filter.limit);
    ++filter.limit;  // one more tells whether there is a next page
    auto asking = reading_.run([filter, limit, config = config_](outbox::pg::Session& session) {
        return api_list(*config, outbox::pg::browse(session, filter), limit);
    });
    co_return json(co_await std::move(asking));
}

asio::awaitable<ServerResponse> Api::story(std::string id) {
    auto asking = reading_.run(
        [id = std::move(id), config = config_](outbox::pg::Session& session) -> std::string {
            const auto told = outbox::pg::tell(session, id, kMostEvents);
            return told ? api_story(*config, *told) : std::string();
        }
    );
    auto text = co_await std::move(asking);
    if (text.empty()) {
        throw ApiProblem(
            404, "Not found", "There is no operation of this id.", {{"answer", "not_found"}}
        );
    }
    co_return json(std::move(text));
}

asio::awaitable<ServerResponse> Api::stats() {
    using Clock = std::chrono::steady_clock;
    const auto began = Clock::now();
    if (!counted_.text.empty() && (counted_.counting || began < counted_.until)) {
        co_return json(counted_.text);
    }
    counted_.counting = true;
    std::exception_ptr failed;
    try {
        auto counting = count();
        counted_.text = co_await std::move(counting);
        counted_.until = Clock::now() + kStatsShare * (Clock::now() - began);
    } catch (...) {
        // What is old by now must not look like an answer of a database that is gone.
        failed = std::current_exception();
        counted_.text.clear();
    }
    counted_.counting = false;
    if (failed) std::rethrow_exception(failed);
    co_return json(counted_.text);
}

asio::awaitable<std::string> Api::count() {
    return reading_.run([](outbox::pg::Session& session) {
        auto answer = api_items(outbox::pg::Client(session).stats());
        answer.set("attention", *api_items(outbox::pg::attention_counts(session)).find("items"));
        answer.set("hours", *api_items(outbox::pg::hourly_tally(session)).find("items"));
        return outbox::to_text(answer);
    });
}

asio::awaitable<ServerResponse> Api::post(ServerRequest request) {
    std::exception_ptr thrown;
    try {
        const auto path = api_path(request.path);
        refuse_query(request);
        if (path.size() != 3 || path[1].empty()) nothing_here();
        if (path[0] == "operations" && path[2] == "compensate") {
            auto compensating = compensate(path[1], request.body);
            co_return co_await std::move(compensating);
        }
        const auto call = read_steering(path[0], path[1], path[2], ApiBody(request.body));
        auto steering = steering_.run([work = call.call](outbox::pg::Session& session) {
            outbox::pg::Client client(session);
            return work(client);
        });
        const auto word = co_await std::move(steering);
        co_return steering_answer(call, word);
    } catch (...) {
        thrown = std::current_exception();
    }
    co_return problem_of(thrown);
}

asio::awaitable<ServerResponse> Api::compensate(const std::string& id, const std::string& body) {
    ApiBody in(body);
    outbox::pg::CompensateCall call{
        .operation_id = id,
        .name = in.optional_text("name"),
        .arguments = in.object("arguments").value_or("{}"),
        .reason = in.optional_text("reason"),
    };
    in.finish();
    auto steering = steering_.run([call = std::move(call)](outbox::pg::Session& session) {
        return outbox::pg::Client(session).compensate(call);
    });
    co_return compensated(id, co_await std::move(steering));
}

}  // namespace outboxd
