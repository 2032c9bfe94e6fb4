#include "daemon/embedded_postgres.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/catch.hpp"

using namespace outboxd;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

struct Folder {
    fs::path path;
    Folder() {
        std::string name = "/tmp/outboxd-embedded-XXXXXX";
        path = mkdtemp(name.data());
        fs::permissions(path, fs::perms(0755));
    }
    ~Folder() { fs::remove_all(path); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
};

int psql(const std::string& dsn, const std::string& sql) {
    return run_process({.argv = {"/usr/bin/psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql, dsn},
                        .env = {},
                        .output = "/dev/null",
                        .user = std::nullopt,
                        .death_signal = SIGKILL})
        .code;
}

std::string postmaster_pid(const fs::path& data_dir) {
    std::ifstream file(data_dir / "postmaster.pid");
    std::string pid;
    std::getline(file, pid);
    return pid;
}

bool gone(const std::string& pid, std::chrono::seconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < end) {
        std::string state;
        std::ifstream file("/proc/" + pid + "/stat");
        std::getline(file, state);
        if (!file || state.find(") Z ") != std::string::npos) return true;  // a zombie is gone
        std::this_thread::sleep_for(20ms);
    }
    return false;
}

}  // namespace

TEST_CASE("a private Postgres keeps its data over a restart and leaves nothing behind") {
    Folder folder;
    const fs::path data = folder.path / "with a space" / "postgres";
    std::string pid;
    {
        EmbeddedPostgres postgres(data.string());
        pid = postmaster_pid(data);
        CHECK(psql(postgres.dsn(), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)") == 0);
        CHECK((fs::status(data).permissions() & fs::perms(0077)) == fs::perms::none);
    }
    CHECK(gone(pid, 1s));
    CHECK_FALSE(fs::exists(data / "postmaster.pid"));

    // Another program has the pid by now (ours stands for it): the file is stale all the same.
    std::ofstream(data / "postmaster.pid") << getppid() << "\n" << data.string() << "\n";
    EmbeddedPostgres postgres(data.string());
    CHECK(psql(postgres.dsn(), "SELECT 1 / count(*) FROM kept") == 0);
    CHECK_THROWS_WITH(EmbeddedPostgres(data.string()), ContainsSubstring("is in use by"));
}

TEST_CASE("a path too long for a socket is no obstacle") {
    Folder folder;
    const fs::path data = folder.path / std::string(120, 'd') / "postgres";
    EmbeddedPostgres postgres(data.string());
    CHECK(psql(postgres.dsn(), "SELECT 1") == 0);
    CHECK(postgres.dsn().find(std::string(120, 'd')) == std::string::npos);
}

TEST_CASE("the server dies with a process that is killed, and the next start waits for it") {
    Folder folder;
    const fs::path data = folder.path / "postgres";
    const pid_t owner = fork();
    if (owner == 0) {
        EmbeddedPostgres postgres(data.string());
        std::ofstream(folder.path / "up") << "up";
        pause();
        _exit(0);
    }
    while (!fs::exists(folder.path / "up")) std::this_thread::sleep_for(20ms);
    const std::string pid = postmaster_pid(data);
    kill(owner, SIGKILL);
    waitpid(owner, nullptr, 0);
    EmbeddedPostgres postgres(data.string());
    CHECK(gone(pid, 1s));
    CHECK(psql(postgres.dsn(), "SELECT 1") == 0);
}

TEST_CASE("a server that was killed is launched again") {
    Folder folder;
    const fs::path data = folder.path / "postgres";
    EmbeddedPostgres postgres(data.string());
    kill(static_cast<pid_t>(std::stol(postmaster_pid(data))), SIGKILL);
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (postgres.running()) std::this_thread::sleep_for(10ms);
    int answer = 1;
    while (answer != 0 && std::chrono::steady_clock::now() < end) {
        if (!postgres.running()) postgres.launch();
        std::this_thread::sleep_for(200ms);
        answer = psql(postgres.dsn(), "SELECT 1");
    }
    CHECK(answer == 0);
}
