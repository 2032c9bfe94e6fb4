#include "daemon/demo.hpp"

#include <fmt/format.h>

#include <chrono>
#include <ostream>
#include <string>

#include "daemon/demo_stories.hpp"
#include "daemon/demo_world.hpp"
#include "daemon/exit_code.hpp"
#include "daemon/table.hpp"

namespace outboxd {
namespace {

// Tells one story and puts its line into the table; false when anything differs.
bool tell(const Story& story, DemoWorld& world, Console console, Table& table) {
    console.out << '\n' << story.name << std::endl;
    std::string verdict = "ok";
    int counted = -1;
    try {
        counted = world.tickets(story.tell(world));
        if (counted != story.expected) verdict = "WRONG";
    } catch (const Interrupted&) {
        throw;
    } catch (const std::exception& error) {
        verdict = fmt::format("WRONG: {}", error.what());
    }
    if (counted >= 0) world.say(fmt::format("the service holds {} of it", counted));
    if (verdict != "ok") world.say(verdict);
    table.add(
        {story.name,
         std::to_string(story.expected),
         counted < 0 ? "?" : std::to_string(counted),
         verdict}
    );
    return verdict == "ok";
}

int tell_all(Console console) {
    const auto begin = std::chrono::steady_clock::now();
    console.out << "A private Postgres (fsync on), a ticket service, daemons: starting"
                << std::endl;
    DemoWorld world(console);
    world.start_desk();
    Table table({"story", "expected", "counted", "verdict"});
    bool all_well = true;
    for (const auto& story : demo_stories()) {
        all_well = tell(story, world, console, table) && all_well;
    }
    world.stop_daemons();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    console.out << fmt::format(
                       "\nTickets, as the service counts them ({:.0f} s):\n\n", took.count()
                   )
                << table.text();
    return all_well ? kDone : kNo;
}

}  // namespace

int run_demo(Console console) {
    try {
        return tell_all(console);
    } catch (const Interrupted&) {
        console.err << "outboxd: interrupted; everything was taken down\n";
    } catch (const EmbeddedPostgresError&) {
        throw;
    } catch (const std::exception& error) {
        console.err << "outboxd: the demo could not go on: " << error.what() << '\n';
    }
    return kNo;
}

}  // namespace outboxd
