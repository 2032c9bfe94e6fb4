#include "outbox/pg/rows.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace outbox::pg {

namespace {

[[noreturn]] void bug(const std::string& what) {
    throw StoreError(StoreError::Kind::bug, what);
}

std::string_view text_of(const pqxx::field& field) {
    return {field.c_str(), static_cast<std::size_t>(field.size())};
}

template <class Number>
Number number(const pqxx::field& field) {
    auto text = text_of(field);
    Number value{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) {
        bug(std::string("column ") + field.name() + " is no number");
    }
    return value;
}

DbTime time(const pqxx::field& field) {
    return DbTime(std::chrono::microseconds(number<std::int64_t>(field)));
}

bool flag(const pqxx::field& field) {
    return text_of(field) == "t";
}

template <class Read>
auto optional(const pqxx::field& field, Read read) -> std::optional<decltype(read(field))> {
    if (field.is_null()) {
        return std::nullopt;
    }
    return read(field);
}

std::string string(const pqxx::field& field) {
    return std::string(text_of(field));
}

// NULL is JSON null. What jsonb holds and we do not read (more levels than our limit) makes this
// row unreadable, not the batch.
Json json(const pqxx::field& field, std::string& unreadable) {
    if (field.is_null()) {
        return {};
    }
    auto parsed = parse_json(text_of(field));
    if (!parsed.value) {
        unreadable = std::string(field.name()) + " cannot be read: " + parsed.error;
        return {};
    }
    return std::move(*parsed.value);
}

// Where the columns are: asked once per answer. By name, libpq compares some twenty names for each
// of some twenty fields of every row.
struct IntentColumns {
    explicit IntentColumns(const pqxx::result& rows)
        : seq(rows.column_number("seq")),
          id(rows.column_number("operation_id")),
          tool(rows.column_number("tool")),
          arguments(rows.column_number("arguments")),
          run_id(rows.column_number("run_id")),
          max_attempts(rows.column_number("max_attempts")),
          expires_at(rows.column_number("expires_at")),
          traceparent(rows.column_number("traceparent")),
          created_at(rows.column_number("created_at")),
          priority(rows.column_number("priority")),
          compensates(rows.column_number("compensates")),
          original_arguments(rows.column_number("original_arguments")),
          original_result(rows.column_number("original_result")) {}

    int seq, id, tool, arguments, run_id, max_attempts, expires_at, traceparent, created_at,
        priority, compensates, original_arguments, original_result;
};

struct AttemptColumns {
    explicit AttemptColumns(const pqxx::result& rows)
        : intent(rows),
          epoch(rows.column_number("lease_epoch")),
          attempts(rows.column_number("attempts")),
          ambiguous(rows.column_number("ambiguous")),
          request_hash(rows.column_number("request_hash")),
          leased_at(rows.column_number("leased_at")),
          deadline_at(rows.column_number("deadline_at")),
          first_attempt_at(rows.column_number("first_attempt_at")),
          eligible_since(rows.column_number("eligible_since")) {}

    IntentColumns intent;
    int epoch, attempts, ambiguous, request_hash, leased_at, deadline_at, first_attempt_at,
        eligible_since;
};

Intent read_intent(const pqxx::row& row, const IntentColumns& at) {
    Intent intent;
    intent.seq = Seq(number<std::int64_t>(row[at.seq]));
    intent.id = OperationId(string(row[at.id]));
    intent.tool = string(row[at.tool]);
    intent.arguments = json(row[at.arguments], intent.unreadable);
    intent.run_id = optional(row[at.run_id], string);
    intent.max_attempts = optional(row[at.max_attempts], number<int>);
    intent.expires_at = optional(row[at.expires_at], time);
    intent.traceparent = optional(row[at.traceparent], string);
    intent.created_at = time(row[at.created_at]);
    intent.priority = number<std::int16_t>(row[at.priority]);
    const auto compensates = row[at.compensates];
    if (!compensates.is_null()) {
        intent.compensates = OperationId(string(compensates));
        intent.original_arguments = json(row[at.original_arguments], intent.unreadable);
        intent.original_result = json(row[at.original_result], intent.unreadable);
    }
    return intent;
}

LeasedAttempt read_attempt(const pqxx::row& row, const AttemptColumns& at) {
    LeasedAttempt attempt;
    attempt.intent = read_intent(row, at.intent);
    attempt.epoch = Epoch(number<std::int32_t>(row[at.epoch]));
    attempt.attempts = number<int>(row[at.attempts]);
    attempt.ambiguous = flag(row[at.ambiguous]);
    attempt.request_hash = number<std::int64_t>(row[at.request_hash]);
    attempt.leased_at = time(row[at.leased_at]);
    attempt.deadline_at = time(row[at.deadline_at]);
    attempt.first_attempt_at = time(row[at.first_attempt_at]);
    attempt.eligible_since = optional(row[at.eligible_since], time);
    return attempt;
}

ClaimedProbe read_claim(const pqxx::row& row, const IntentColumns& columns) {
    ClaimedProbe claim;
    claim.intent = read_intent(row, columns);
    claim.epoch = Epoch(number<std::int32_t>(row["lease_epoch"]));
    claim.probe_started_at = time(row["probe_started_at"]);
    claim.unknown_since = time(row["unknown_since"]);
    claim.attempts = number<int>(row["attempts"]);
    // After a timeline change an operation may be unknown without a recorded attempt: the waiting
    // time then counts from the change, and the request is the present configuration's.
    claim.attempt_epoch = Epoch(optional(row["attempt_epoch"], number<std::int32_t>).value_or(0));
    claim.request_hash = optional(row["request_hash"], number<std::int64_t>).value_or(0);
    claim.deadline_at = optional(row["deadline_at"], time).value_or(claim.unknown_since);
    claim.first_attempt_at = optional(row["first_attempt_at"], time).value_or(claim.unknown_since);
    claim.key_since = optional(row["first_attempt_at"], time).value_or(claim.intent.created_at);
    claim.probes = number<int>(row["probes"]);
    claim.absent_count = number<int>(row["absent_count"]);
    claim.last_absent_at = optional(row["last_absent_at"], time);
    claim.asked = flag(row["asked"]);
    claim.flagged = flag(row["flagged"]);
    claim.absent_believed = flag(row["absent_believed"]);
    return claim;
}

constexpr std::array kEncodings = {
    std::pair{KeySettings::Encoding::hex, std::string_view{"hex"}},
    std::pair{KeySettings::Encoding::uuid, std::string_view{"uuid"}},
    std::pair{KeySettings::Encoding::base64url, std::string_view{"base64url"}},
    std::pair{KeySettings::Encoding::base32hex, std::string_view{"base32hex"}},
    std::pair{KeySettings::Encoding::short_, std::string_view{"short"}},
};

template <class Number>
std::optional<Number> number(const Json* value) {
    if (value == nullptr || value->as_number() == nullptr) {
        return std::nullopt;
    }
    const auto& text = value->as_number()->text;
    Number result{};
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return result;
}

}  // namespace

std::vector<LeasedAttempt> read_leased(const pqxx::result& rows) {
    std::vector<LeasedAttempt> all;
    all.reserve(static_cast<std::size_t>(rows.size()));
    const AttemptColumns columns(rows);
    for (const auto& row : rows) {
        all.push_back(read_attempt(row, columns));
    }
    // Cheaper here than in the statement; the rows lie in this order as a rule.
    const auto order = [](const LeasedAttempt& a, const LeasedAttempt& b) {
        return std::pair(a.intent.priority, a.intent.seq) <
               std::pair(b.intent.priority, b.intent.seq);
    };
    if (!std::is_sorted(all.begin(), all.end(), order)) std::sort(all.begin(), all.end(), order);
    return all;
}

std::vector<ClaimedProbe> read_claimed(const pqxx::result& rows) {
    std::vector<ClaimedProbe> all;
    all.reserve(static_cast<std::size_t>(rows.size()));
    const IntentColumns columns(rows);
    for (const auto& row : rows) {
        all.push_back(read_claim(row, columns));
    }
    return all;
}

ResentAttempt read_resent(const pqxx::row& row) {
    return {
        .epoch = Epoch(number<std::int32_t>(row["lease_epoch"])),
        .attempts = number<int>(row["attempts"])
    };
}

std::vector<ToolDrift> read_drifts(const pqxx::result& rows) {
    std::vector<ToolDrift> drifts;
    for (const auto& row : rows) {
        const auto kind = string(row["kind"]);
        drifts.push_back(
            {.tool = string(row["tool"]),
             .kind = kind == "key"       ? Drift::key
                     : kind == "request" ? Drift::request
                                         : Drift::revision,
             .open = number<std::int64_t>(row["open"]),
             .worker = string(row["worker"])}
        );
    }
    return drifts;
}

std::vector<ToolSample> read_samples(const pqxx::result& rows) {
    std::vector<ToolSample> all;
    for (const auto& row : rows) {
        auto status = parse_status(text_of(row["status"]));
        if (!status) {
            bug("a status that this build does not know: " + string(row["status"]));
        }
        all.push_back(
            {string(row["tool"]),
             *status,
             number<std::int64_t>(row["count"]),
             row["oldest_seconds"].as<double>(),
             row["served"].as<bool>()}
        );
    }
    return all;
}

RollUp read_roll_up(const pqxx::result& rows) {
    RollUp all;
    for (const auto& row : rows) {
        all.tools.push_back(
            {string(row["tool"]),
             number<std::int64_t>(row["enqueued"]),
             number<std::int64_t>(row["replayed"])}
        );
        all.more = all.more || row["more"].as<bool>();
    }
    return all;
}

Json to_json(const KeySettings& settings) {
    Json json;
    for (const auto& [encoding, name] : kEncodings) {
        if (encoding == settings.encoding) {
            json.set("encoding", name);
        }
    }
    json.set("prefix", settings.prefix);
    json.set("max_length", static_cast<std::int64_t>(settings.max_length));
    json.set(
        "window_ms",
        settings.window ? Json(static_cast<std::int64_t>(settings.window->count())) : Json(nullptr)
    );
    return json;
}

KeySettings read_key_settings(const std::string& text) {
    auto parsed = parse_json(text);
    auto bad = [&]() { bug("key settings that this build does not know: " + text); };
    if (!parsed.value) {
        bad();
    }
    const auto* encoding = parsed.value->find("encoding");
    const auto* prefix = parsed.value->find("prefix");
    auto max_length = number<std::int64_t>(parsed.value->find("max_length"));
    auto window = number<std::int64_t>(parsed.value->find("window_ms"));
    if (encoding == nullptr || encoding->as_string() == nullptr || prefix == nullptr ||
        prefix->as_string() == nullptr || !max_length) {
        bad();
    }
    KeySettings settings;
    bool known = false;
    for (const auto& [value, name] : kEncodings) {
        if (name == *encoding->as_string()) {
            settings.encoding = value;
            known = true;
        }
    }
    if (!known) {
        bad();
    }
    settings.prefix = *prefix->as_string();
    settings.max_length = static_cast<std::size_t>(*max_length);
    settings.window.reset();
    if (window) {
        settings.window = std::chrono::milliseconds(*window);
    }
    return settings;
}

std::vector<std::string> read_texts(const pqxx::result& rows) {
    std::vector<std::string> all;
    for (const auto& row : rows) {
        all.push_back(string(row[0]));
    }
    return all;
}

}  // namespace outbox::pg
