#include "daemon/embedded_postgres.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <vector>

#include "daemon/pause.hpp"

namespace outboxd {
namespace {

namespace fs = std::filesystem;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr int kPort = 5432;  // part of the socket's name only
constexpr std::uintmax_t kLogLimit = 10 * 1024 * 1024;

// The lines of postmaster.pid: 0 is the pid, 7 the state ("ready", "starting", "stopping").
std::vector<std::string> postmaster_file(const fs::path& data_dir) {
    std::ifstream file(data_dir / "postmaster.pid");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) {
        line.erase(line.find_last_not_of(' ') + 1);
        lines.push_back(line);
    }
    return lines;
}

std::string state_of(const std::vector<std::string>& lines) {
    return lines.size() > 7 ? lines[7] : "";
}

bool is_live_postgres(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string line;  // pid (command) state …
    return std::getline(file, line) && line.find(" (postgres) ") != std::string::npos &&
           line.find(" (postgres) Z") == std::string::npos;
}

std::string tail(const std::string& file) {
    std::ifstream in(file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::string text;
    for (std::size_t i = lines.size() > 5 ? lines.size() - 5 : 0; i < lines.size(); ++i) {
        text += "\n  " + lines[i];
    }
    return text;
}

// As root: the owner of an existing cluster, else the user that Debian's package made.
std::optional<User> server_user(const fs::path& data_dir) {
    if (geteuid() != 0) return std::nullopt;
    struct stat status{};
    const bool exists = stat((data_dir / "PG_VERSION").c_str(), &status) == 0;
    auto user = exists && status.st_uid != 0 ? find_user(status.st_uid) : find_user("postgres");
    if (!user) {
        throw EmbeddedPostgresError(
            "Postgres does not run as root and there is no user postgres; run outboxd as another "
            "user"
        );
    }
    return user;
}

// The server must reach its directory through every parent.
void check_reachable(const fs::path& data_dir, const User& user) {
    for (fs::path parent = data_dir.parent_path(); parent != parent.root_path();
         parent = parent.parent_path()) {
        struct stat status{};
        if (stat(parent.c_str(), &status) != 0) continue;
        bool passes = (status.st_mode & S_IXOTH) != 0;
        if (status.st_uid == user.uid) passes = (status.st_mode & S_IXUSR) != 0;
        if (!passes) {
            throw EmbeddedPostgresError(fmt::format(
                "Postgres runs as user {} and cannot enter {}; set database.embedded.data_dir to a "
                "directory it can reach, or run outboxd as another user",
                user.name,
                parent.string()
            ));
        }
    }
}

fs::path absolute(const std::string& data_dir) {
    fs::path path = fs::absolute(data_dir).lexically_normal();
    return path.has_filename() ? path : path.parent_path();
}

// The socket lies in the cluster; where that path is too long for a socket, in /tmp under a name
// that is the same at every start.
fs::path socket_dir_of(const fs::path& data_dir) {
    const auto longest = sizeof(sockaddr_un{}.sun_path) - std::strlen("/.s.PGSQL.65535.lock") - 1;
    if (data_dir.string().size() <= longest) return data_dir;
    return fmt::format(
        "/tmp/outboxd-{}-{:x}", geteuid(), std::hash<std::string>{}(data_dir.string())
    );
}

// A directory of our own (or the server user's) that nobody else can enter.
void make_private(const fs::path& dir, const std::optional<User>& user) {
    fs::create_directories(dir.parent_path());
    if (mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
        throw EmbeddedPostgresError(
            fmt::format("cannot make the directory {}: {}", dir.string(), std::strerror(errno))
        );
    }
    struct stat status{};
    const uid_t owner = user ? user->uid : geteuid();
    if (lstat(dir.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        (status.st_uid != owner && status.st_uid != geteuid())) {
        throw EmbeddedPostgresError(fmt::format("{} belongs to somebody else", dir.string()));
    }
    if (user && chown(dir.c_str(), user->uid, user->gid) != 0) {
        throw EmbeddedPostgresError(fmt::format("cannot give {} to {}", dir.string(), user->name));
    }
    chmod(dir.c_str(), 0700);
}

}  // namespace

std::optional<fs::path> find_postgres_bin() {
    const auto holds_server = [](const fs::path& dir) {
        return access((dir / "initdb").c_str(), X_OK) == 0 &&
               access((dir / "postgres").c_str(), X_OK) == 0;
    };
    if (FILE* pipe = popen("pg_config --bindir 2>/dev/null", "r"); pipe != nullptr) {
        std::array<char, 4096> line{};
        const bool read = std::fgets(line.data(), line.size(), pipe) != nullptr;
        pclose(pipe);
        std::string dir = read ? line.data() : "";
        dir.erase(dir.find_last_not_of("\r\n") + 1);
        if (!dir.empty() && holds_server(dir)) return dir;
    }
    std::optional<fs::path> newest;
    int newest_version = 0;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
        const int version = std::atoi(entry.path().filename().c_str());
        if (version <= newest_version || !holds_server(entry.path() / "bin")) continue;
        newest = entry.path() / "bin";
        newest_version = version;
    }
    return newest;
}

std::string embedded_dsn(const std::string& data_dir) {
    const auto socket_dir = socket_dir_of(absolute(data_dir));
    return fmt::format(
        "host={} port={} user=postgres dbname=postgres", dsn_value(socket_dir.string()), kPort
    );
}

std::string dsn_value(const std::string& value) {
    if (!value.empty() && value.find_first_of(" '\\\t\n") == std::string::npos) return value;
    std::string out = "'";
    for (const char c : value) {
        if (c == '\'' || c == '\\') out += '\\';
        out += c;
    }
    return out += '\'';
}

EmbeddedPostgres::EmbeddedPostgres(const std::string& data_dir) : data_dir_(absolute(data_dir)) {
    const auto bin = find_postgres_bin();
    if (!bin) {
        throw EmbeddedPostgresError(
            "no Postgres server found (pg_config --bindir, /usr/lib/postgresql/*/bin); install one "
            "(Debian: apt-get install postgresql), or set database.dsn"
        );
    }
    bin_dir_ = *bin;
    log_file_ = data_dir_.string() + ".log";
    user_ = server_user(data_dir_);
    make_private(data_dir_, user_);
    if (user_) check_reachable(data_dir_, *user_);
    socket_dir_ = socket_dir_of(data_dir_);
    if (socket_dir_ != data_dir_) make_private(socket_dir_, user_);
    dsn_ = embedded_dsn(data_dir);
    std::error_code ignored;
    if (fs::file_size(log_file_, ignored) > kLogLimit && !ignored) fs::remove(log_file_, ignored);
    if (!fs::exists(data_dir_ / "PG_VERSION")) initialise();
    wait_for_predecessor();
    launch();
    wait_ready();
}

EmbeddedPostgres::~EmbeddedPostgres() {
    stop();
}

void EmbeddedPostgres::initialise() {
    const std::string init_log = data_dir_.string() + ".initdb.log";
    // A run of initdb that was cut short leaves a directory that the next one would refuse.
    for (const auto& entry : fs::directory_iterator(data_dir_)) fs::remove_all(entry.path());
    const Exit exit = run_process({
        .argv =
            {(bin_dir_ / "initdb").string(),
             "-D",
             data_dir_.string(),
             "-A",
             "trust",
             "-U",
             "postgres",
             "-E",
             "UTF8",
             "--locale=C.UTF-8",
             "--no-instructions"},
        .env = {},
        .output = init_log,
        .user = user_,
        .death_signal = SIGTERM,
    });
    if (exit.code != 0) {
        throw EmbeddedPostgresError(fmt::format("initdb failed; {}:{}", init_log, tail(init_log)));
    }
    fs::remove(init_log);
}

// After a kill of the daemon its server takes a moment to end; after a kill of both a stale
// postmaster.pid is left, whose pid may by now be another program's.
void EmbeddedPostgres::wait_for_predecessor() {
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
        const auto lines = postmaster_file(data_dir_);
        if (lines.empty()) return;
        if (!is_live_postgres(lines[0])) {
            fs::remove(data_dir_ / "postmaster.pid");
            return;
        }
        const auto waited = std::chrono::steady_clock::now() - begin;
        if (waited > (state_of(lines) == "stopping" ? 60s : 3s)) {
            throw EmbeddedPostgresError(fmt::format(
                "{} is in use by the Postgres server with pid {}; stop the daemon it belongs to, "
                "or "
                "use another data_dir",
                data_dir_.string(),
                lines[0]
            ));
        }
        pause_for(20ms);
    }
}

void EmbeddedPostgres::launch() {
    server_.reset();
    server_ = std::make_unique<Process>(ProcessOptions{
        .argv =
            {(bin_dir_ / "postgres").string(),
             "-D",
             data_dir_.string(),
             "-p",
             std::to_string(kPort),
             "-c",
             "listen_addresses=",
             "-c",
             "unix_socket_directories=\"" + socket_dir_.string() + "\"",
             "-c",
             "unix_socket_permissions=0700",
             "-c",
             "logging_collector=off"},
        .env = {},
        .output = log_file_,
        .user = user_,
        .death_signal = SIGINT,  // Postgres' fast shutdown
    });
}

void EmbeddedPostgres::wait_ready() {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < end) {
        if (!running()) {
            throw EmbeddedPostgresError(
                fmt::format("Postgres ended at its start; {}:{}", log_file_, tail(log_file_))
            );
        }
        const auto lines = postmaster_file(data_dir_);
        if (!lines.empty() && lines[0] == std::to_string(server_->pid()) &&
            state_of(lines) == "ready") {
            return;
        }
        pause_for(10ms);
    }
    throw EmbeddedPostgresError(fmt::format("Postgres is not ready after 60 s; see {}", log_file_));
}

bool EmbeddedPostgres::running() {
    return server_ && !server_->poll();
}

void EmbeddedPostgres::stop() {
    if (server_) server_->stop(SIGINT, 30s);
    server_.reset();
    if (socket_dir_ != data_dir_) {
        std::error_code ignored;
        fs::remove(socket_dir_, ignored);  // only when it is empty
    }
}

}  // namespace outboxd
