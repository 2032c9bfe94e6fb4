// The C++ client beside a real Postgres and a real daemon: the harness sets PG* and POOLER_PORT.
// Prints "ok NAME" per case; exit 1 with the first check that does not hold.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <optional>
#include <outboxd/client.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;

void check(bool holds, const std::string& what) {
    if (!holds) {
        throw std::runtime_error(what);
    }
}

template <class Error>
Error refused(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    throw std::runtime_error("not refused");
}

outboxd::Request ticket(const std::string& id, const std::string& title = "x") {
    outboxd::Request request;
    request.tool = "create_ticket";
    request.arguments = "{\"title\": \"" + title + "\"}";
    request.operation_id = id;
    return request;
}

outboxd::Time in_an_hour() {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now() + 1h
    );
}

outboxd::Receipt commit(pqxx::connection& db, const outboxd::Request& request) {
    pqxx::work transaction(db);
    auto receipt = outboxd::enqueue(transaction, request);
    transaction.commit();
    return receipt;
}

std::optional<outboxd::Operation> get(pqxx::connection& db, const std::string& id) {
    pqxx::nontransaction look(db);
    return outboxd::get(look, id);
}

void joins_the_transaction(pqxx::connection& db) {
    {
        pqxx::work transaction(db);
        const auto receipt = outboxd::enqueue(transaction, ticket("cpp-1", "no"));
        check(receipt.status == outboxd::Status::pending && receipt.replayed == false, "new");
    }  // rolled back
    check(!get(db, "cpp-1"), "a rollback leaves nothing");
    commit(db, ticket("cpp-1", "yes"));
    const auto done = outboxd::wait(db, "cpp-1", {60s, 1s});
    check(done && done->status == outboxd::Status::succeeded && done->final(), "succeeded");
    check(done->result && done->result->find("T-") != std::string::npos, "result");
    check(done->tool == "create_ticket" && done->attempts == 1, "operation");
    check(done->finished_at && *done->finished_at >= done->created_at, "times");
    const auto age = std::chrono::system_clock::now() - done->created_at;
    check(age > -1h && age < 1h, "created_at is now");
    const auto again = commit(db, ticket("cpp-1", "yes"));
    check(again.replayed == true && again.result == done->result, "replayed with its result");
}

void one_run(pqxx::connection& db) {
    auto call = ticket("");
    call.operation_id.reset();
    call.run_id = "cpp-run";
    call.arguments = R"({"title": "disk", "n": 200})";
    const auto first = commit(db, call);
    call.arguments = R"({"n":200.0,"title":" disk "})";
    const auto again = commit(db, call);
    check(again.replayed == true && again.operation_id == first.operation_id, "one operation");
    call.occurrence = 2;
    check(commit(db, call).operation_id != first.operation_id, "a second intended one");
    call.run_id.reset();
    refused<outboxd::BadRequest>([&] { commit(db, call); });
}

void refusals(pqxx::connection& db) {
    auto wrong = ticket("cpp-3");
    wrong.tool = "create_tickets";
    const auto unknown = refused<outboxd::UnknownTool>([&] { commit(db, wrong); });
    check(unknown.sqlstate() == "OB404" && unknown.detail().has_value(), "detail");
    check(unknown.hint().value_or("").find("create_ticket") != std::string::npos, "hint");
    refused<outboxd::TooLarge>([&] { commit(db, ticket("cpp-3", std::string(1'100'000, 'x'))); });
    commit(db, ticket("cpp-3", "one"));
    refused<outboxd::IdConflict>([&] { commit(db, ticket("cpp-3", "two")); });
    refused<std::invalid_argument>([&] { commit(db, ticket(std::string("cpp\0-3", 6))); });
    refused<pqxx::sql_error>([&] { commit(db, ticket("cpp-bad", "\" no json")); });

    pqxx::work transaction(db);  // a savepoint keeps it
    refused<outboxd::UnknownTool>([&] {
        pqxx::subtransaction savepoint(transaction);
        outboxd::enqueue(savepoint, wrong);
    });
    outboxd::enqueue(transaction, ticket("cpp-saved"));
    transaction.commit();
    check(get(db, "cpp-saved").has_value(), "the transaction went on");
}

void failed_means_no_effect(pqxx::connection& db) {
    auto call = ticket("cpp-refused", "rude");
    commit(db, call);
    const auto failed = outboxd::wait(db, "cpp-refused", {60s, 1s});
    check(failed && failed->status == outboxd::Status::failed, "failed");
    check(failed->error.value_or("").find("rude_title") != std::string::npos, "error");
    call.retry_failed = true;
    check(commit(db, call).status == outboxd::Status::pending, "armed again");
    const auto done = outboxd::wait(db, "cpp-refused", {60s, 1s});
    check(done->status == outboxd::Status::succeeded, "done");
}

void many(pqxx::connection& db) {
    auto later = ticket("cpp-many-a");
    later.run_at = in_an_hour();
    later.expires_at = *later.run_at + 1h;
    later.labels = {{"team \"x\"", "a\\b\n"}};
    later.priority = -3;
    later.max_attempts = 4;
    auto sly = ticket("cpp-many-c");
    sly.arguments = R"({}, "tool": "create_tickets")";
    pqxx::work transaction(db);
    const auto receipts =
        outboxd::enqueue_many(transaction, {ticket("cpp-many-b"), later, ticket("cpp-many-b")});
    check(receipts.size() == 3 && receipts[2].replayed == true, "in the order of the request");
    check(receipts[1].status == outboxd::Status::scheduled, "run_at");
    check(outboxd::enqueue_many(transaction, {}).empty(), "none");
    check(outboxd::enqueue(transaction, later).replayed == true, "said the other way");
    transaction.commit();
    refused<pqxx::sql_error>([&] {
        pqxx::work next(db);
        outboxd::enqueue_many(next, {sly});
    });
    pqxx::work cancelling(db);
    check(outboxd::cancel(cancelling, "cpp-many-a") == outboxd::Cancelled::cancelled, "cancelled");
    check(
        outboxd::cancel(cancelling, "cpp-many-a", "again") == outboxd::Cancelled::already_cancelled,
        "already_cancelled"
    );
    check(outboxd::cancel(cancelling, "cpp-nobody") == outboxd::Cancelled::not_found, "not_found");
    cancelling.commit();
}

outboxd::Receipt undo(
    pqxx::connection& db, const std::string& id, const outboxd::Compensation& how
) {
    pqxx::work transaction(db);
    auto receipt = outboxd::compensate(transaction, id, how);
    transaction.commit();
    return receipt;
}

void compensating(pqxx::connection& db) {
    const auto note = R"({"note": "cpp"})";
    commit(db, ticket("cpp-undo"));
    const auto done = outboxd::wait(db, "cpp-undo", {60s, 1s});
    check(done && done->status == outboxd::Status::succeeded, "succeeded");
    const auto filed = undo(db, "cpp-undo", {"close", note, "a mistake"});
    check(filed.operation_id == "cpp-undo:compensate:close" && filed.replayed == false, "filed");
    const auto closed = outboxd::wait(db, filed.operation_id, {60s, 1s});
    check(closed && closed->status == outboxd::Status::succeeded, "undone");
    check(closed->result && closed->result->find("closed") != std::string::npos, "its result");
    check(closed->compensates == "cpp-undo", "compensates");
    check(get(db, "cpp-undo")->compensated_by == closed->operation_id, "compensated_by");
    const auto again = undo(db, "cpp-undo", {{}, note, {}});  // the only one needs no name
    check(again.replayed == true && again.result == closed->result, "once");
    check(commit(db, ticket("cpp-undo")).message.find("then undone") != std::string::npos, "told");
    refused<outboxd::IdConflict>([&] {
        undo(db, "cpp-undo", {"close", R"({"note": "another"})", {}});
    });

    auto later = ticket("cpp-undo-later");
    later.run_at = in_an_hour();
    commit(db, later);
    const auto instead = undo(db, "cpp-undo-later", {"close"});
    check(instead.status == outboxd::Status::cancelled && instead.replayed == false, "instead");
    const auto nothing = undo(db, "cpp-undo-later", {"close"});
    check(nothing.status == outboxd::Status::cancelled && nothing.replayed == true, "nothing");
    check(nothing.message.find("nothing to compensate") != std::string::npos, "and it says so");
    check(!get(db, "cpp-undo-later:compensate:close"), "nothing was filed");

    // "cpp-1" is of the first case, and stands.
    const auto unknown = refused<outboxd::UnknownTool>([&] { undo(db, "cpp-1", {"clsoe"}); });
    check(
        std::string(unknown.what()).find("no compensation \"clsoe\"") != std::string::npos, "which"
    );
    check(unknown.hint().value_or("").find("\"close\"") != std::string::npos, "the way out");
    const auto nobody = refused<outboxd::UnknownTool>([&] { undo(db, "cpp-nobody", {"close"}); });
    check(std::string(nobody.what()).find("\"cpp-nobody\"") != std::string::npos, "whose");
}

void waiting(pqxx::connection& db) {
    auto later = ticket("cpp-later");
    later.run_at = in_an_hour();
    commit(db, later);
    const auto seen = outboxd::wait(db, "cpp-later", {300ms, 1s});
    check(seen && seen->status == outboxd::Status::scheduled && !seen->final(), "as it is");
    check(!outboxd::wait(db, "cpp-nobody", {100ms, 1s}), "unknown id");
    check(outboxd::wait(db, "cpp-later", {0ms, 1s}).has_value(), "no time at all");
    {
        pqxx::work transaction(db);
        outboxd::enqueue(transaction, ticket("cpp-inside"));
        const auto error =
            refused<outboxd::InTransaction>([&] { outboxd::wait(db, "cpp-inside"); });
        check(std::string{error.what()}.find("Commit first") != std::string::npos, "says so");
        transaction.commit();
    }
    check(outboxd::wait(db, "cpp-inside", {60s, 1s})->final(), "after the commit");
    pqxx::nontransaction session(db);
    check(session.exec("SELECT * FROM pg_listening_channels()").empty(), "listens no more");
}

void woken(pqxx::connection& db) {
    check(outboxd::detail::may_subscribe(db), "a direct session may listen");
    outboxd::detail::Subscription hints(db);
    auto soon = ticket("cpp-woken");
    soon.run_at = in_an_hour() - 1h + 1s;
    commit(db, soon);
    const auto start = std::chrono::steady_clock::now();
    for (;;) {  // only a notification ends such a sleep early
        const auto seen = get(db, "cpp-woken");
        if (seen->final()) {
            break;
        }
        outboxd::detail::doze(db, 60s);
    }
    check(std::chrono::steady_clock::now() - start < 50s, "woken");
}

void pooled() {
    pqxx::connection db("port=" + std::string{std::getenv("POOLER_PORT")});
    check(!outboxd::detail::may_subscribe(db), "a pooled session may not listen");
    for (int i = 0; i < 10; ++i) {
        commit(db, ticket("cpp-pooled"));
    }
    check(outboxd::wait(db, "cpp-pooled", {60s, 200ms})->final(), "polled");
}

void retrying(pqxx::connection& db) {
    for (const std::string state : {"40001", "40P01"}) {
        int tries = 0;
        const auto work = [&](pqxx::work& transaction) {
            const auto receipt = outboxd::enqueue(transaction, ticket("cpp-retry-" + state));
            if (++tries < 3) {
                transaction.exec("DO $$ BEGIN RAISE SQLSTATE '" + state + "'; END $$");
            }
            return receipt;
        };
        check(outboxd::retry_transaction(db, work).replayed == false && tries == 3, state);
        check(get(db, "cpp-retry-" + state).has_value(), "committed");
    }
    int tries = 0;
    const auto always = [&](pqxx::work& transaction) {
        ++tries;
        transaction.exec("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$");
    };
    refused<pqxx::serialization_failure>([&] { outboxd::retry_transaction(db, always, 2); });
    check(tries == 2, "gives up");
}

}  // namespace

int main() {
    pqxx::connection db("");
    const std::vector<std::pair<std::string, std::function<void()>>> cases{
        {"a call joins the transaction", [&] { joins_the_transaction(db); }},
        {"the same call in one run is one operation", [&] { one_run(db); }},
        {"refusals have a class, a detail and a hint", [&] { refusals(db); }},
        {"failed means no effect", [&] { failed_means_no_effect(db); }},
        {"many, and cancel", [&] { many(db); }},
        {"compensating", [&] { compensating(db); }},
        {"waiting", [&] { waiting(db); }},
        {"woken by listen", [&] { woken(db); }},
        {"behind a pooler it polls", [] { pooled(); }},
        {"retrying", [&] { retrying(db); }},
    };
    for (const auto& [name, body] : cases) {
        try {
            body();
            std::cout << "ok " << name << std::endl;
        } catch (const std::exception& error) {
            std::cout << "FAILED " << name << ": " << error.what() << std::endl;
            return 1;
        }
    }
}
