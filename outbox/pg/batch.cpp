#include "outbox/pg/batch.hpp"

#include <algorithm>
#include <utility>

#include "outbox/pg/array_text.hpp"
#include "outbox/sha256.hpp"

namespace outbox::pg {

namespace {

// Anything a column's array may be made of, for each transition in turn.
template <class Add>
std::string column(Batch batch, Add add) {
    ArrayText array;
    for (const auto* transition : batch) {
        add(array, *transition);
    }
    return std::move(array).take();
}

// The same, but nothing at all where no transition has anything to say: the statement reads null.
template <class Has, class Add>
std::string sparse(Batch batch, Has has, Add add) {
    const bool any = std::any_of(batch.begin(), batch.end(), [&](const Transition* transition) {
        return has(*transition);
    });
    return any ? column(batch, add) : "{}";
}

std::optional<std::string> text_or_null(const Json& value) {
    if (value.is_null()) {
        return std::nullopt;
    }
    return to_text(value);
}

std::optional<std::string> text_of(const std::optional<Error>& error) {
    if (!error) {
        return std::nullopt;
    }
    Json json;
    json.set("code", error->code);
    json.set("message", error->message);
    return to_text(json);
}

// outcome_failed wants to know why, and so do planners.
std::optional<std::string> error_of(const Transition& t) {
    if (t.to == Status::failed && !t.error) {
        return text_of(Error{"failed", "The operation failed without a stated reason."});
    }
    return text_of(t.error);
}

void add_attention(ArrayText& array, const Transition& t) {
    if (t.attention) {
        array.add(to_string(*t.attention));
    } else {
        array.add_null();
    }
}

// What the statements read as a set of rows.
std::string text_of_events(const Transition& transition) {
    Json::Array events;
    for (const auto& event : transition.events) {
        Json json;
        json.set("operation_id", transition.id.value);
        json.set("kind", to_string(event.kind));
        json.set("detail", event.detail);
        events.push_back(std::move(json));
    }
    return to_text(Json(std::move(events)));
}

std::string events_of(Batch batch) {
    return sparse(
        batch,
        [](const Transition& t) { return !t.events.empty(); },
        [](ArrayText& array, const Transition& t) {
            t.events.empty() ? array.add_null() : array.add(std::string_view(text_of_events(t)));
        }
    );
}

void add_seqs_and_epochs(Parameters& parameters, Batch batch) {
    parameters.emplace_back(column(batch, [](ArrayText& a, const Transition& t) {
        a.add(t.seq.value);
    }));
    parameters.emplace_back(column(batch, [](ArrayText& a, const Transition& t) {
        a.add(t.epoch.value);
    }));
    parameters.emplace_back(column(batch, [](ArrayText& a, const Transition& t) {
        a.add(to_string(t.to));
    }));
}

std::optional<std::string> worker_or_null(const WorkerId& worker) {
    if (worker.value.empty()) {
        return std::nullopt;
    }
    return worker.value;
}

std::optional<std::string> milliseconds_of(const std::optional<std::chrono::milliseconds>& time) {
    if (!time) {
        return std::nullopt;
    }
    return std::to_string(time->count());
}

std::string_view name_of(Transition::Evidence evidence) {
    switch (evidence) {
        case Transition::Evidence::effect:
            return "effect";
        case Transition::Evidence::no_effect:
            return "no_effect";
        case Transition::Evidence::none:
            break;
    }
    return "none";
}

// An asynchronous API took it: unknown, but nothing went wrong.
bool accepted(const Transition& t) {
    return t.writer == Transition::Writer::attempt && t.to == Status::unknown && !t.error;
}

std::string printable(const std::string& text) {
    std::string kept;
    for (char c : text.substr(0, 100)) {
        kept += c >= ' ' && c <= '~' ? c : '?';
    }
    return kept;
}

}  // namespace

bool is_final(Status status) {
    return status == Status::succeeded || status == Status::failed || status == Status::cancelled;
}

Parameters finish_parameters(Batch batch) {
    Parameters parameters;
    parameters.reserve(8);
    add_seqs_and_epochs(parameters, batch);
    parameters.emplace_back(column(batch, [](ArrayText& a, const Transition& t) {
        a.add(text_or_null(t.result));
    }));
    parameters.emplace_back(sparse(
        batch,
        [](const Transition& t) { return t.error || t.to == Status::failed; },
        [](ArrayText& a, const Transition& t) { a.add(error_of(t)); }
    ));
    parameters.emplace_back(sparse(
        batch,
        [](const Transition& t) { return t.attempts_delta != 0; },
        [](ArrayText& a, const Transition& t) { a.add(t.attempts_delta); }
    ));
    parameters.emplace_back(sparse(
        batch, [](const Transition& t) { return t.attention.has_value(); }, add_attention
    ));
    parameters.emplace_back(events_of(batch));
    return parameters;
}

Parameters move_parameters(Batch batch, const WorkerId& worker) {
    Parameters parameters;
    parameters.reserve(16);
    auto add = [&](auto one) { parameters.emplace_back(column(batch, one)); };
    add_seqs_and_epochs(parameters, batch);
    add([](ArrayText& a, const Transition& t) {
        t.due_in ? a.add(t.due_in->count()) : a.add_null();
    });
    add([](ArrayText& a, const Transition& t) { a.add(t.attempts_delta); });
    add([](ArrayText& a, const Transition& t) { a.add_bool(t.ambiguous); });
    add([](ArrayText& a, const Transition& t) { a.add_bool(accepted(t)); });
    add(add_attention);
    add([](ArrayText& a, const Transition& t) { a.add(text_or_null(t.result)); });
    add([](ArrayText& a, const Transition& t) { a.add(text_of(t.error)); });
    add([](ArrayText& a, const Transition& t) { a.add(t.probe ? t.probe->probes : 0); });
    add([](ArrayText& a, const Transition& t) { a.add(t.probe ? t.probe->absent_count : 0); });
    add([](ArrayText& a, const Transition& t) {
        if (t.probe && t.probe->last_absent_at) {
            a.add(t.probe->last_absent_at->time_since_epoch().count());
        } else {
            a.add_null();
        }
    });
    add([](ArrayText& a, const Transition& t) { a.add_bool(t.writer == Transition::Writer::probe); }
    );
    parameters.emplace_back(events_of(batch));
    parameters.emplace_back(worker_or_null(worker));
    return parameters;
}

Parameters fate_parameters(Batch batch) {
    Parameters parameters;
    add_seqs_and_epochs(parameters, batch);
    parameters.emplace_back(column(batch, [](ArrayText& a, const Transition& t) {
        a.add(text_or_null(t.result));
    }));
    return parameters;
}

Parameters late_parameters(const Transition& late, const WorkerId& worker) {
    auto clean = [](std::optional<std::string> text) {
        return text ? std::optional(without_nul(std::move(*text))) : std::nullopt;
    };
    return {
        std::to_string(late.seq.value),
        clean(late.id.value),
        std::to_string(late.epoch.value),
        std::string(name_of(late.evidence)),
        clean(text_or_null(late.result)),
        clean(error_of(late)),
        std::string(to_string(late.to)),
        milliseconds_of(late.due_in),
        std::to_string(late.attempts_delta),
        worker_or_null(worker)
    };
}

Transition last_resort(const Transition& transition, const std::string& why) {
    auto safe = transition;
    if (!safe.result.is_null()) {
        auto text = to_text(safe.result);
        Json digest;
        digest.set("truncated", true);
        digest.set("sha256", sha256_hex(text));
        digest.set("bytes", static_cast<std::int64_t>(text.size()));
        safe.result = std::move(digest);
    }
    if (safe.error) {
        safe.error = Error{
            printable(safe.error->code),
            "The message could not be stored; see the event result_lost."
        };
    }
    for (auto& event : safe.events) {
        event.detail = Json::Object{};
    }
    Json detail;
    detail.set("why", printable(why));
    safe.events.push_back({EventKind::result_lost, std::move(detail)});
    return safe;
}

}  // namespace outbox::pg
