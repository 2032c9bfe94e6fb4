#include "daemon/mcp/face.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "daemon/mcp/answer.hpp"
#include "daemon/output.hpp"
#include "daemon/settled.hpp"
#include "daemon/uuid.hpp"
#include "daemon/version.hpp"
#include "outbox/pg/pg_error.hpp"

namespace outboxd::mcp {
namespace {

using namespace std::chrono_literals;
using outbox::Json;
using outbox::StoreError;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstPause = 100ms;  // between two tries of recording
constexpr milliseconds kLongestPause = 1000ms;
// How long recording is tried while the database is away.
constexpr milliseconds kLeastPatience = 2000ms;
constexpr milliseconds kMostPatience = 10'000ms;
constexpr milliseconds kProgress = 1000ms;
// Of tools/list and server/discover: a reload may change what is offered.
constexpr int kFresh = 60'000;

constexpr std::string_view kInstructions =
    "Actions go through an outbox: each is recorded, carried out once, and its result is kept. "
    "Calling "
    "the same action again with the same arguments never repeats it: you get the earlier result. "
    "If an "
    "answer says that an action is in progress (truth pending, unknown or needs_attention), do not "
    "call it again to make sure and do not report failure: go on with something else, ask "
    "outbox_status, or say that it is not confirmed yet. Only truth rejected means that it did not "
    "happen.";

constexpr std::string_view kUnreachable =
    "Nothing was done: the outbox's database cannot be reached, and this action was not recorded. "
    "Call "
    "again later.";

constexpr std::string_view kNotTaken =
    "Nothing was done: the outbox could not take this call, and this action was not recorded. "
    "Whoever runs it finds the reason in its log.";

class Counted {
 public:
    explicit Counted(int& count) : count_(++count) {}
    ~Counted() { --count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

 private:
    int& count_;
};

void add_freshness(Json& result) {
    result.set("ttlMs", kFresh);
    result.set("cacheScope", "private");
}

Json capabilities() {
    Json out;
    out.set("tools", Json(Json::Object{}));
    return out;
}

Reply answer(const Message& message, Json result) {
    return {result_text(message, std::move(result)), 200};
}

Reply refuse(const Message& message, const Fault& fault) {
    return {fault_text(message.id, fault), fault.http_status};
}

Reply discover(const Message& message) {
    Json::Array supported;
    for (const auto revision : revisions()) supported.emplace_back(revision);
    Json out;
    out.set("supportedVersions", std::move(supported));
    out.set("capabilities", capabilities());
    out.set("instructions", kInstructions);
    add_freshness(out);
    return answer(message, std::move(out));
}

Reply initialize(const Message& message) {
    const auto* wanted = message.params.find("protocolVersion");
    if (wanted == nullptr || wanted->as_string() == nullptr) {
        return refuse(message, {kInvalidParams, "params.protocolVersion must be a text", {}, 200});
    }
    Json server;
    server.set("name", "outboxd");
    server.set("version", kVersion);
    Json out;
    out.set("protocolVersion", negotiated(*wanted->as_string()));
    out.set("capabilities", capabilities());
    out.set("serverInfo", std::move(server));
    out.set("instructions", kInstructions);
    return answer(message, std::move(out));
}

// What the database refused, for a model: our own functions say what is wrong and the way out.
std::string refusal_of(const outbox::pg::SqlError& error) {
    if (error.sqlstate() == "22P05") {  // untranslatable character, which jsonb has but one of
        return "Nothing was done: a text of the arguments holds the character U+0000, which cannot "
               "be kept; leave it out.";
    }
    if (!error.sqlstate().starts_with("OB")) {
        const bool data = error.kind() == StoreError::Kind::data;
        return data ? fmt::format("Nothing was done: {}.", error.message())
                    : fmt::format(
                          "Nothing was done: the outbox refused to record it ({}). Whoever runs it "
                          "finds the reason in its log.",
                          error.sqlstate()
                      );
    }
    auto text = "Nothing was done: " + error.message() + ".";
    for (const auto* part : {&error.detail(), &error.hint()}) {
        if (!part->empty()) text += " " + *part;
    }
    return text;
}

const Json* progress_token(const Message& message) {
    const auto* token = message.meta("progressToken");
    if (token == nullptr) return nullptr;
    return token->as_string() != nullptr || token->as_number() != nullptr ? token : nullptr;
}

bool is_settled(const Json& row) {
    // Where a person is asked nobody waits for the answer.
    return is_final(row) || !member_text(row, "attention").empty();
}

}  // namespace

asio::awaitable<Reply> Face::handle(Message message, Exchange& exchange) {
    if (message.kind == Message::Kind::fault) co_return refuse(message, message.fault);
    if (message.kind != Message::Kind::request) co_return Reply{"", 202};
    const auto& method = message.method;
    if (method == "tools/call") {
        auto calling = call(message, exchange);
        co_return co_await std::move(calling);
    }
    if (method == "tools/list") co_return list(message);
    if (message.modern && method == "server/discover") co_return discover(message);
    if (!message.modern && method == "initialize") co_return initialize(message);
    if (!message.modern && method == "ping") co_return answer(message, Json(Json::Object{}));
    // The era of sessions has no status of its own for it.
    const int status = message.modern ? 404 : 200;
    co_return refuse(message, {kMethodNotFound, "Method not found", {}, status});
}

Reply Face::list(const Message& message) const {
    const auto* cursor = message.params.find("cursor");
    auto page = offer_->page(cursor == nullptr || cursor->is_null() ? nullptr : cursor);
    if (!page) {
        return refuse(message, {kInvalidParams, "params.cursor is none of this server's", {}, 200});
    }
    if (message.modern) add_freshness(*page);
    return answer(message, std::move(*page));
}

asio::awaitable<Reply> Face::call(const Message& message, Exchange& exchange) {
    const auto offer = offer_;  // a reload may replace it meanwhile
    const Counted counted(calls_);
    if (calls_ > kMaxCalls) {
        co_return answer(
            message,
            refusal("Nothing was done: too many calls are under way at once. Call again later.")
        );
    }
    auto plan = plan_call(message, *offer, exchange.run, "mcp-read:" + make_uuid());
    Json result;
    if (auto* fault = std::get_if<Fault>(&plan)) co_return refuse(message, *fault);
    if (auto* refused = std::get_if<Refused>(&plan)) {
        result = refusal(refused->message);
    } else if (auto* enqueue = std::get_if<EnqueuePlan>(&plan)) {
        auto carrying = carry_out(std::move(*enqueue), message, exchange);
        result = co_await std::move(carrying);
    } else if (auto* compensate = std::get_if<CompensatePlan>(&plan)) {
        auto carrying = carry_out(std::move(*compensate), *offer, message, exchange);
        result = co_await std::move(carrying);
    } else {
        auto looking = look(std::get<StatusPlan>(plan).operation_id, *offer);
        result = co_await std::move(looking);
    }
    co_return answer(message, std::move(result));
}

asio::awaitable<Json> Face::carry_out(
    EnqueuePlan plan, const Message& message, Exchange& exchange
) {
    Ask ask = [this, call = plan.call] { return ledger_.enqueue(call); };
    auto recording = record(std::move(ask), plan.operation_id, exchange);
    auto recorded = co_await std::move(recording);
    if (recorded.answer) co_return std::move(*recorded.answer);
    auto settling = settle(std::move(recorded.row), message, exchange);
    co_return co_await std::move(settling);
}

asio::awaitable<Json> Face::carry_out(
    CompensatePlan plan, const Offer& offer, const Message& message, Exchange& exchange
) {
    auto looking = read(plan.call.operation_id);
    const auto original = co_await std::move(looking);
    if (!original) co_return refusal(kUnreachable);
    if (!offer.covers(member_text(*original, "tool"))) {
        co_return refusal(
            "Nothing was done: no action with this id is recorded here. The operation_id is in the "
            "answer of the call that asked for the action."
        );
    }
    Ask ask = [this, call = plan.call] { return ledger_.compensate(call); };
    auto recording = record(std::move(ask), "", exchange);
    auto recorded = co_await std::move(recording);
    if (recorded.answer) co_return std::move(*recorded.answer);
    auto settling = settle(std::move(recorded.row), message, exchange);
    co_return co_await std::move(settling);
}

asio::awaitable<Json> Face::look(std::string operation_id, const Offer& offer) {
    auto reading = read(operation_id);
    const auto row = co_await std::move(reading);
    if (!row) co_return out_of_sight(operation_id);
    if (!offer.covers(member_text(*row, "tool"))) co_return unseen(operation_id);
    co_return answer_of(*row);
}

// Empty: the database cannot be asked. An unknown id is a row without members.
asio::awaitable<std::optional<Json>> Face::read(std::string operation_id) {
    try {
        auto getting = ledger_.get(std::move(operation_id));
        const auto text = co_await std::move(getting);
        co_return row_of(text.empty() ? "{}" : text);
    } catch (const StoreError& error) {
        log_.warn("mcp: an operation could not be read", {{"error", error.what()}});
    }
    co_return std::nullopt;
}

// Recording is idempotent, for the id stays: what is in doubt, or could not be asked, is asked
// again.
asio::awaitable<Face::Recorded> Face::record(
    Ask ask, std::string operation_id, Exchange& exchange
) {
    const auto end = steady_clock::now() + std::clamp(wait_, kLeastPatience, kMostPatience);
    auto pause = kFirstPause;
    bool doubt = false;
    for (;;) {
        std::string refused;
        try {
            auto asking = ask();
            const auto text = co_await std::move(asking);
            co_return Recorded{row_of(text), std::nullopt};
        } catch (const StoreError& error) {
            using Kind = StoreError::Kind;
            log_.warn("mcp: a call was not recorded", {{"error", error.what()}});
            doubt = doubt || error.kind() == Kind::in_doubt;
            const auto* sql = dynamic_cast<const outbox::pg::SqlError*>(&error);
            const bool asked = error.kind() == Kind::data || error.kind() == Kind::bug;
            if (asked) refused = sql != nullptr ? refusal_of(*sql) : std::string(kNotTaken);
        }
        const bool over = exchange.stopped || steady_clock::now() >= end;
        if (doubt && (over || !refused.empty())) co_return Recorded{{}, in_doubt(operation_id)};
        if (!refused.empty()) co_return Recorded{{}, refusal(refused)};
        if (over) co_return Recorded{{}, refusal(kUnreachable)};
        auto pausing = exchange.bell.wait(pause);
        co_await std::move(pausing);
        pause = std::min(pause * 2, kLongestPause);
    }
}

asio::awaitable<Json> Face::settle(Json row, const Message& message, Exchange& exchange) {
    const auto id = member_text(row, "operation_id");
    const auto replayed = *row.find("replayed");
    const auto* token = exchange.notify ? progress_token(message) : nullptr;
    const auto start = steady_clock::now();
    auto next_progress = start + kProgress;
    int told = 0;
    const auto watch = ledger_.watch(id, exchange.bell);
    while (!is_settled(row)) {
        auto reading = read(id);
        auto found = co_await std::move(reading);
        if (found && !found->as_object()->empty()) {
            row = std::move(*found);
            row.set("replayed", replayed);
        }
        const auto now = steady_clock::now();
        if (is_settled(row) || exchange.stopped || now >= start + wait_) break;
        auto pause = std::min(start + wait_ - now, steady_clock::duration(ledger_.poll_interval()));
        if (token != nullptr && now >= next_progress) {
            next_progress = now + kProgress;
            const auto text = progress_text(
                *token,
                ++told,
                std::max(told, static_cast<int>(wait_ / kProgress)),
                progress_of(member_text(row, "status"))
            );
            auto telling = exchange.notify(text);
            if (!co_await std::move(telling)) break;  // nobody listens
        }
        if (token != nullptr) pause = std::min(pause, next_progress - now);
        auto waiting = exchange.bell.wait(std::max(pause, steady_clock::duration(1ms)));
        co_await std::move(waiting);
    }
    co_return answer_of(row);
}

}  // namespace outboxd::mcp
