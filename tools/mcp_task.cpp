#include "tools/mcp_task.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace tools {
namespace {

using outbox::Cause;
using outbox::Deadline;
using outbox::Json;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using State = McpTask::State;
using Asked = McpTaskLine::Asked;

constexpr nanoseconds kPoll = std::chrono::seconds{1};
constexpr nanoseconds kShortestPoll = milliseconds{50};
constexpr nanoseconds kLongestPoll = std::chrono::seconds{30};
// What is kept of the deadline for the last look.
constexpr nanoseconds kLastLook = milliseconds{500};
constexpr std::size_t kLongestId = 1024;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParams = -32602;

std::string text_of(const Json* value) {
    const auto* text = value == nullptr ? nullptr : value->as_string();
    return text == nullptr ? std::string() : *text;
}

bool is_task_id(std::string_view id) {
    return !id.empty() && id.size() <= kLongestId && std::none_of(id.begin(), id.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
}

std::optional<State> parse_state(std::string_view text) {
    constexpr std::array<std::pair<std::string_view, State>, 5> kStates = {{
        {"working", State::working},
        {"input_required", State::input_required},
        {"completed", State::completed},
        {"failed", State::failed},
        {"cancelled", State::cancelled},
    }};
    for (const auto& [name, state] : kStates) {
        if (name == text) return state;
    }
    return std::nullopt;
}

nanoseconds poll_of(const Json& task) {
    for (const auto* name : {"pollIntervalMs", "pollInterval"}) {
        const auto* value = task.find(name);
        const auto* number = value == nullptr ? nullptr : value->as_number();
        if (number == nullptr) continue;
        std::int64_t ms = 0;
        const auto& text = number->text;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), ms);
        constexpr std::int64_t kADay = 24LL * 60 * 60 * 1000;
        if (read.ec != std::errc()) continue;
        return std::clamp<nanoseconds>(
            milliseconds(std::clamp<std::int64_t>(ms, 0, kADay)), kShortestPoll, kLongestPoll
        );
    }
    return kPoll;
}

std::optional<McpTask> task_of(const Json& task) {
    const auto state = parse_state(text_of(task.find("status")));
    const auto* id = task.find("taskId");
    if (!state || id == nullptr || id->as_string() == nullptr) return std::nullopt;
    McpTask out;
    if (is_task_id(*id->as_string())) out.id = *id->as_string();
    out.state = *state;
    out.message = text_of(task.find("statusMessage"));
    out.poll = poll_of(task);
    RpcMessage end;
    if (const auto* result = task.find("result"); result && *state == State::completed) {
        end.kind = RpcMessage::Kind::result;
        end.body = *result;
        out.end = std::move(end);
    } else if (const auto* error = task.find("error"); error && *state == State::failed) {
        end.kind = RpcMessage::Kind::error;
        end.body = *error;
        const auto* code = error->find("code");
        const auto* number = code == nullptr ? nullptr : code->as_number();
        int value = 0;
        if (number != nullptr) {
            const auto& text = number->text;
            std::from_chars(text.data(), text.data() + text.size(), value);
        }
        end.code = value;
        out.end = std::move(end);
    }
    return out;
}

McpEnd ended(McpTaskEnd::How how, const McpTask& task) {
    McpEnd end;
    end.what = McpTaskEnd{how, task.id, task.message};
    return end;
}

// Not a call that was not sent: it was, and only looking at what became of it failed.
McpEnd not_seen(Asked asked) {
    auto end = std::move(asked.failure);
    end.stale = false;
    if (auto* failure = std::get_if<McpFailure>(&end.what)) {
        failure->sent = true;
    } else {
        const auto status = asked.status ? std::to_string(*asked.status) : std::string("none");
        end = lost(Cause::status, "task_unseen", "tasks/get was answered with status " + status);
    }
    end.signal = asked.signal;
    return end;
}

McpEnd unreadable(std::string what) {
    return lost(Cause::unreadable, "unreadable", std::move(what));
}

McpEnd answered(const RpcMessage& message, Asked asked) {
    auto answer = to_answer(message);
    answer.status = asked.status;
    answer.headers = std::move(asked.headers);
    McpEnd end;
    end.what = std::move(answer);
    end.of_task = true;
    end.signal = asked.signal;
    return end;
}

bool is_error(const Asked& asked) {
    return asked.answer && asked.answer->kind == RpcMessage::Kind::error;
}

// One look; `task` is what was seen of it at last. Empty: it goes on.
class Look {
 public:
    Look(McpTaskLine& line, McpTask& task) : line_(line), task_(task) {}

    asio::awaitable<std::optional<McpEnd>> take();
    // The look itself failed: it says nothing about the task, and may be taken again.
    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] bool hopeless() const { return hopeless_; }

 private:
    // What the state that is known says.
    asio::awaitable<std::optional<McpEnd>> conclude(Asked asked);
    [[nodiscard]] McpEnd fail(Asked asked);
    asio::awaitable<std::optional<McpEnd>> fetch_result();

    McpTaskLine& line_;
    McpTask& task_;
    bool failed_ = false;
    bool hopeless_ = false;
};

McpEnd Look::fail(Asked asked) {
    failed_ = true;
    hopeless_ = asked.hopeless;
    return not_seen(std::move(asked));
}

asio::awaitable<std::optional<McpEnd>> Look::take() {
    failed_ = false;
    auto asking = line_.ask("tasks/get", task_.id);
    auto asked = co_await std::move(asking);
    if (!asked.answer) co_return fail(std::move(asked));
    if (is_error(asked)) {
        const auto code = asked.answer->code;
        if (code == kInvalidParams || code == kMethodNotFound) {
            task_.message = text_of(asked.answer->body.find("message"));
            co_return ended(McpTaskEnd::How::forgotten, task_);
        }
        auto& failure = asked.failure;
        failure = lost(
            Cause::mcp,
            "task_unseen",
            "tasks/get was refused: " + text_of(asked.answer->body.find("message"))
        );
        co_return fail(std::move(asked));
    }
    auto seen = read_task(*asked.answer);
    if (!seen || seen->id != task_.id) {
        asked.failure = unreadable("tasks/get was answered with something that is not the task");
        co_return fail(std::move(asked));
    }
    task_ = std::move(*seen);
    auto concluding = conclude(std::move(asked));
    co_return co_await std::move(concluding);
}

asio::awaitable<std::optional<McpEnd>> Look::conclude(Asked asked) {
    std::optional<McpEnd> end;
    switch (task_.state) {
        case State::working:
            break;
        case State::input_required:
            end = ended(McpTaskEnd::How::input_required, task_);
            break;
        case State::cancelled:
            end = ended(McpTaskEnd::How::cancelled, task_);
            break;
        case State::completed:
        case State::failed:
            if (task_.end) {
                end = answered(*task_.end, std::move(asked));
            } else {
                auto fetching = fetch_result();
                end = co_await std::move(fetching);
            }
            break;
    }
    co_return end;
}

asio::awaitable<std::optional<McpEnd>> Look::fetch_result() {
    auto asking = line_.ask("tasks/result", task_.id);
    auto asked = co_await std::move(asking);
    if (!asked.answer) co_return fail(std::move(asked));
    // What completed has a result: an error is about asking for it (it may just have expired), and
    // must not meet rules that are about the tool's own errors.
    if (is_error(asked) && task_.state == State::completed) {
        const auto said = text_of(asked.answer->body.find("message"));
        asked.failure = unreadable("the task completed, but tasks/result was refused: " + said);
        auto end = not_seen(std::move(asked));
        co_return end;
    }
    const auto answer = *asked.answer;
    co_return answered(answer, std::move(asked));
}

}  // namespace

std::optional<McpTask> read_created_task(const RpcMessage& answer) {
    if (answer.kind != RpcMessage::Kind::result) return std::nullopt;
    if (text_of(answer.body.find("resultType")) == "task") return task_of(answer.body);
    const auto* task = answer.body.find("task");
    const bool whole =
        answer.body.find("content") != nullptr || answer.body.find("structuredContent") != nullptr;
    if (task == nullptr || whole) return std::nullopt;
    return task_of(*task);
}

std::optional<McpTask> read_task(const RpcMessage& answer) {
    if (answer.kind != RpcMessage::Kind::result) return std::nullopt;
    return task_of(answer.body);
}

asio::awaitable<McpEnd> follow_task(
    McpTaskLine& line,
    McpTask task,
    std::function<asio::awaitable<bool>(std::string)> keep,
    Deadline deadline
) {
    if (task.id.empty()) co_return unreadable("the server gave a task id that is none");
    bool kept = !keep;
    Look look(line, task);
    std::optional<McpEnd> end;
    bool first = true;
    for (;;) {
        if (!kept) {
            auto keeping = keep(task.id);
            kept = co_await std::move(keeping);
        }
        // It may have ended before it was told of.
        if (!first || task.state != State::working) {
            auto looking = look.take();
            end = co_await std::move(looking);
        }
        first = false;
        const bool again = !end || (look.failed() && !look.hopeless());
        if (!again) co_return std::move(*end);
        const auto left = deadline.left();
        if (left <= kLastLook / 2) break;
        auto waiting = line.wait(std::min(task.poll, std::max(left - kLastLook, kLastLook / 2)));
        const bool waited = co_await std::move(waiting);
        if (!waited) {
            co_return lost(
                Cause::other, "cancelled", "This process stopped before the task ended."
            );
        }
        if (deadline.passed()) break;
    }
    if (end) co_return std::move(*end);
    co_return ended(McpTaskEnd::How::working, task);
}

asio::awaitable<McpEnd> look_at_task(McpTaskLine& line, std::string id) {
    McpTask task;
    task.id = std::move(id);
    Look look(line, task);
    auto looking = look.take();
    auto end = co_await std::move(looking);
    if (end) co_return std::move(*end);
    co_return ended(McpTaskEnd::How::working, task);
}

}  // namespace tools
