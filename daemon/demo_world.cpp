#include "daemon/demo_world.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <ostream>

#include "daemon/demo_config.hpp"
#include "daemon/output.hpp"
#include "daemon/pause.hpp"
#include "tools/encoding.hpp"

namespace outboxd {
namespace {

namespace fs = std::filesystem;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

volatile std::sig_atomic_t interrupted = 0;

void note_interrupt(int) {
    interrupted = 1;
}

// A port that was free a moment ago.
int free_port() {
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    const bool bound =
        bind(descriptor, generic, length) == 0 && getsockname(descriptor, generic, &length) == 0;
    close(descriptor);
    if (!bound) throw std::runtime_error("no free port on 127.0.0.1");
    return ntohs(address.sin_port);
}

std::string read_file(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string last_line(std::string text) {
    text.erase(text.find_last_not_of('\n') + 1);
    const auto before = text.rfind('\n');
    return before == std::string::npos ? text : text.substr(before + 1);
}

std::string sql_text(std::string_view value) {  // a literal of SQL
    std::string out = "'";
    for (const char c : value) {
        if (c == '\'') out += '\'';
        out += c;
    }
    return out += '\'';
}

outbox::Json parsed(const std::string& text) {
    return outbox::parse_json(text).value.value_or(outbox::Json());
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "outboxd-demo-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
    // As root the server runs as another user, who must be able to pass.
    fs::permissions(path_, fs::perms(0755));
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

DemoWorld::DemoWorld(Console console)
    : console_(console),
      self_(fs::read_symlink("/proc/self/exe").string()),
      client_(io_.get_executor(), {.connect_timeout = 1s, .ca_file = std::nullopt}, no_failpoints_),
      postgres_((folder_.path() / "postgres").string()) {
    interrupted = 0;
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, note_interrupt);
    if (run_process({.argv = {self_, "migrate", "--database", postgres_.dsn()},
                     .env = {},
                     .output = (folder_.path() / "migrate.log").string(),
                     .user = std::nullopt,
                     .death_signal = SIGTERM})
            .code != 0) {
        throw std::runtime_error("migrate failed: " + read_file(folder_.path() / "migrate.log"));
    }
    planner("CREATE TABLE planner_step (run text, step text, PRIMARY KEY (run, step));");
}

void DemoWorld::start_desk() {
    if (desk_port_ == 0) desk_port_ = free_port();
    desk_ = std::make_unique<Process>(ProcessOptions{
        .argv = {self_, "ticket-desk", "--port", std::to_string(desk_port_)},
        .env = {},
        .output = (folder_.path() / "ticket-desk.log").string(),
        .user = std::nullopt,
        .death_signal = SIGKILL,
    });
    const auto answers = [&] {
        if (desk_->poll()) {
            throw std::runtime_error(
                "the ticket service ended: " + read_file(folder_.path() / "ticket-desk.log")
            );
        }
        return http(desk_port_, "GET", "/count", "", 1s).has_value();
    };
    wait_until(answers, "the ticket service");
}

void DemoWorld::stop_desk() {
    desk_->stop(SIGTERM, 2s);
    desk_.reset();
}

void DemoWorld::set_desk(std::string_view behaviour, const std::string& title) {
    outbox::Json rule;
    rule.set("behaviour", behaviour);
    rule.set("title", title);
    rule.set("next", 1);
    const auto answer = http(desk_port_, "POST", "/mode", outbox::to_text(rule), 2s);
    if (!answer || answer->status != 200) throw std::runtime_error("the ticket service is deaf");
}

void DemoWorld::release_desk() {
    http(desk_port_, "POST", "/release", "", 2s);
}

int DemoWorld::tickets(const std::string& title) {
    const auto target = "/count?title=" + tools::percent_encode(title);
    const auto answer = http(desk_port_, "GET", target, "", 2s);
    if (!answer) throw std::runtime_error("the ticket service does not answer");
    return std::stoi(member_text(parsed(answer->body), "count"));
}

bool DemoWorld::post_ticket(const std::string& title) {
    outbox::Json ticket;
    ticket.set("title", title);
    const auto answer = http(desk_port_, "POST", "/tickets", outbox::to_text(ticket), 2s);
    return answer && answer->status == 201;
}

void DemoWorld::say(std::string_view line) {
    console_.out << "  " << line << std::endl;
}

void DemoWorld::wait_until(const std::function<bool()>& done, std::string_view what) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!done()) {
        if (interrupted != 0) throw Interrupted();
        if (std::chrono::steady_clock::now() > end) {
            throw std::runtime_error(fmt::format("waited 20 s for {}", what));
        }
        pause_for(20ms);
    }
}

std::optional<tools::HttpResponse> DemoWorld::http(
    int port,
    std::string method,
    std::string target,
    std::string body,
    std::chrono::milliseconds limit
) {
    tools::HttpRequest request{
        .method = std::move(method),
        .origin = {.tls = false, .host = "127.0.0.1", .port = port},
        .target = std::move(target),
        .headers = {{"Content-Type", "application/json"}},
        .body = std::move(body)
    };
    std::optional<tools::HttpResponse> response;
    bool finished = false;
    auto exchange = client_.send(std::move(request), outbox::Deadline::after(limit));
    boost::asio::co_spawn(
        io_,
        std::move(exchange),
        [&](std::exception_ptr error, tools::HttpResult result) {
            auto* answer = error ? nullptr : std::get_if<tools::HttpResponse>(&result);
            if (answer != nullptr) response = std::move(*answer);
            finished = true;
        }
    );
    io_.restart();
    while (!finished) io_.run_one();
    return response;
}

std::string DemoWorld::planner(const std::string& sql) {
    if (interrupted != 0) throw Interrupted();
    const auto script = folder_.path() / "planner.sql";
    const auto output = folder_.path() / "planner.out";
    std::ofstream(script) << sql << '\n';
    fs::remove(output);
    const Exit exit = run_process({
        .argv =
            {(*find_postgres_bin() / "psql").string(),
             "-XqAt",
             "-v",
             "ON_ERROR_STOP=1",
             "-d",
             postgres_.dsn(),
             "-f",
             script.string()},
        .env = {},
        .output = output.string(),
        .user = std::nullopt,
        .death_signal = SIGKILL,
    });
    if (exit.code != 0) throw std::runtime_error("the planner's SQL failed: " + read_file(output));
    return last_line(read_file(output));
}

outbox::Json DemoWorld::get(const std::string& operation_id) {
    return parsed(
        planner("SELECT row_to_json(g) FROM outbox.get(" + sql_text(operation_id) + ") g;")
    );
}

outbox::Json DemoWorld::wait_for(const std::string& operation_id, std::string_view status) {
    outbox::Json row;
    const auto reached = [&] {
        row = get(operation_id);
        return member_text(row, "status") == status;
    };
    wait_until(reached, fmt::format("operation {} to be {}", operation_id, status));
    return row;
}

bool DemoWorld::happened(const std::string& operation_id, std::string_view event) {
    const std::string sql =
        "SELECT count(*) FROM outbox.event WHERE operation_id = " + sql_text(operation_id) +
        " AND kind = " + sql_text(event) + ";";
    return planner(sql) != "0";
}

void DemoWorld::start_daemon() {
    const int port = free_port();
    const std::string config =
        (folder_.path() / fmt::format("daemon-{}.yaml", ++started_)).string();
    std::ofstream(config) << demo_config(port, desk_port_);
    daemons_.push_back(std::make_unique<Process>(ProcessOptions{
        .argv = {self_, "run", "-c", config},
        .env = {{"OUTBOXD_DATABASE", postgres_.dsn()}},
        .output = config + ".log",
        .user = std::nullopt,
        .death_signal = SIGKILL,
    }));
    const auto ready = [&] {
        if (daemons_.back()->poll()) {
            throw std::runtime_error(
                "the daemon ended at its start: " + read_file(config + ".log")
            );
        }
        const auto answer = http(port, "GET", "/readyz", "", 1s);
        return answer && answer->status == 200;
    };
    wait_until(ready, "the daemon to be ready");
}

void DemoWorld::kill_daemon() {
    daemons_.back()->signal(SIGKILL);
    daemons_.back()->wait();
    daemons_.pop_back();
}

void DemoWorld::stop_daemons() {
    for (auto& daemon : daemons_) daemon->signal(SIGTERM);
    for (auto& daemon : daemons_) daemon->stop(SIGTERM, 5s);
    daemons_.clear();
}

}  // namespace outboxd
