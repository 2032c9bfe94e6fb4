#include "daemon/demo_stories.hpp"

#include <fmt/format.h>

#include <array>

#include "daemon/output.hpp"

namespace outboxd {
namespace {

// One transaction of the planner: its own state and the intent, both or neither.
std::string step(
    const std::string& run,
    const std::string& title,
    const std::string& more = "",
    const std::string& end = "COMMIT"
) {
    return fmt::format(
        "BEGIN;\n"
        "INSERT INTO planner_step (run, step) VALUES ('{0}', '{1}') ON CONFLICT DO NOTHING;\n"
        "SELECT row_to_json(r) FROM outbox.enqueue('create_ticket', '{{\"title\": \"{1}\"}}',"
        " run_id => '{0}'{2}) r;\n{3};",
        run,
        title,
        more,
        end
    );
}

outbox::Json receipt(const std::string& line) {
    return outbox::parse_json(line).value.value_or(outbox::Json());
}

void expect(const outbox::Json& row, std::string_view member, std::string_view value) {
    const std::string is = member_text(row, member);
    if (is != value) throw StoryError(fmt::format("{} is {}, not {}", member, is, value));
}

std::string enqueue(DemoWorld& world, const std::string& run, const std::string& title) {
    const auto row = receipt(world.planner(step(run, title)));
    world.say(fmt::format(
        "planner: BEGIN; its own row; outbox.enqueue(…); COMMIT → replayed={}, {}",
        member_text(row, "replayed"),
        member_text(row, "status")
    ));
    return member_text(row, "operation_id");
}

std::string naive(DemoWorld& world) {
    const std::string title = "disk full (naive)";
    world.set_desk("drop_after", title);
    const bool first = world.post_ticket(title);
    world.say("worker: POST /tickets → no answer; the service had it all the same");
    const bool second = world.post_ticket(title);
    world.say("planner: no answer, so once more → 201");
    if (first || !second) throw StoryError("the service answered otherwise");
    return title;
}

std::string killed(DemoWorld& world) {
    const std::string title = "disk full (worker killed)";
    world.start_daemon();
    world.set_desk("hold_after", title);
    const std::string id = enqueue(world, "run-killed", title);
    world.wait_until([&] { return world.tickets(title) == 1; }, "the ticket");
    world.kill_daemon();
    world.release_desk();
    world.say("the ticket exists, nothing is recorded: kill -9 to the worker");
    world.start_daemon();
    world.say("a second daemon starts; the dead one's lease has to run out first");
    // The status may be past by the time we look; the event stays.
    world.wait_until([&] { return world.happened(id, "lease_expired"); }, "the lease to run out");
    world.say("unknown: it may have happened, so the service is asked, nothing is sent");
    const auto row = world.wait_for(id, "succeeded");
    world.say(fmt::format(
        "found: succeeded, result {}, attempts {}",
        member_text(row, "result"),
        member_text(row, "attempts")
    ));
    expect(row, "attempts", "1");
    if (!world.happened(id, "probe")) throw StoryError("it was not reconciled by a probe");
    return title;
}

std::string replayed(DemoWorld& world) {
    const std::string title = "disk full (step retried)";
    const std::string id = enqueue(world, "run-replay", title);
    world.wait_for(id, "succeeded");
    const auto row = receipt(world.planner(step("run-replay", title)));
    world.say(fmt::format(
        "planner, the same step again → replayed={}, {}, result {}",
        member_text(row, "replayed"),
        member_text(row, "status"),
        member_text(row, "result")
    ));
    world.say(fmt::format("\"{}\"", member_text(row, "message")));
    expect(row, "replayed", "true");
    expect(row, "status", "succeeded");
    expect(row, "operation_id", id);
    return title;
}

std::string not_sent(DemoWorld& world) {
    const std::string title = "disk full (service down)";
    world.stop_desk();
    const std::string id = enqueue(world, "run-down", title);
    world.wait_until([&] { return world.happened(id, "retry"); }, "the first attempt");
    world.say("the service is down, nothing was sent: no need to ask, retried by itself");
    world.start_desk();
    const auto row = world.wait_for(id, "succeeded");
    world.say(
        fmt::format("the service is back: succeeded, attempts {}", member_text(row, "attempts"))
    );
    if (world.happened(id, "probe")) throw StoryError("it was probed without need");
    return title;
}

std::string refused(DemoWorld& world) {
    const std::string title = "disk full (refused)";
    world.set_desk("refuse", title);
    const std::string id = enqueue(world, "run-refused", title);
    const auto failed = world.wait_for(id, "failed");
    world.say(fmt::format("422: failed, no effect, {}", member_text(failed, "error")));
    if (world.tickets(title) != 0) throw StoryError("a refused request left a ticket");
    const auto row = receipt(world.planner(step("run-refused", title, ", retry_failed => true")));
    world.say(fmt::format(
        "planner, with retry_failed → replayed={}, {}",
        member_text(row, "replayed"),
        member_text(row, "status")
    ));
    expect(row, "replayed", "false");
    world.wait_for(id, "succeeded");
    return title;
}

std::string rolled_back(DemoWorld& world) {
    const std::string title = "disk full (rolled back)";
    const auto row = receipt(world.planner(step("run-rollback", title, "", "ROLLBACK")));
    world.say(
        fmt::format("planner: BEGIN; outbox.enqueue(…) → {}; ROLLBACK", member_text(row, "status"))
    );
    // Whatever is enqueued later is done first: then the daemon has looked, and found nothing.
    world.wait_for(enqueue(world, "run-after", "after the rollback"), "succeeded");
    if (!world.get(member_text(row, "operation_id")).is_null()) {
        throw StoryError("the intent is there in spite of the rollback");
    }
    return title;
}

std::string two_runs(DemoWorld& world) {
    const std::string title = "disk full (every week)";
    const std::string monday = enqueue(world, "monday", title);
    const std::string tuesday = enqueue(world, "tuesday", title);
    world.say("the same arguments, another run: another intent");
    world.wait_for(monday, "succeeded");
    world.wait_for(tuesday, "succeeded");
    return title;
}

const std::array<Story, 7> kStories = {{
    {"naive retry, without the outbox", 2, naive},
    {"worker killed after the ticket, before the record", 1, killed},
    {"planner retries the same step", 1, replayed},
    {"first attempt not sent: service down", 1, not_sent},
    {"refused (422), then retry_failed", 1, refused},
    {"planner rolls back", 0, rolled_back},
    {"Monday's run and Tuesday's run", 2, two_runs},
}};

}  // namespace

std::span<const Story> demo_stories() {
    return kStories;
}

}  // namespace outboxd
