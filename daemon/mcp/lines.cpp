#include "daemon/mcp/lines.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string_view>
#include <system_error>
#include <utility>

namespace outboxd::mcp {
namespace {

constexpr std::size_t kChunk = std::size_t{64} * 1024;

bool again(int error) {
    return error == EINTR || error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

LineReader::LineReader(int fd, std::size_t max_line)
    : fd_(fd), max_line_(max_line), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

LineReader::~LineReader() {
    close(event_);
}

void LineReader::stop() {
    eventfd_write(event_, 1);
}

// False: stop() was called.
bool LineReader::wait() {
    pollfd files[2] = {{event_, POLLIN, 0}, {fd_, POLLIN, 0}};
    while (poll(files, 2, -1) < 0 && errno == EINTR) {
    }
    return files[0].revents == 0;
}

void LineReader::run(const std::function<void(Line)>& on_line) {
    std::string chunk(kChunk, '\0');
    while (wait()) {
        const auto got = read(fd_, chunk.data(), chunk.size());
        if (got < 0 && again(errno)) continue;
        if (got <= 0) break;
        take(std::string_view(chunk.data(), static_cast<std::size_t>(got)), on_line);
    }
    end_line(on_line);  // the last one may lack its newline
}

void LineReader::take(std::string_view bytes, const std::function<void(Line)>& on_line) {
    while (!bytes.empty()) {
        const auto end = bytes.find('\n');
        const auto part = bytes.substr(0, end);
        if (line_.text.size() + part.size() > max_line_) {
            line_.too_long = true;
            line_.text.clear();
        }
        if (!line_.too_long) line_.text += part;
        if (end == std::string_view::npos) return;
        bytes.remove_prefix(end + 1);
        end_line(on_line);
    }
}

void LineReader::end_line(const std::function<void(Line)>& on_line) {
    auto line = std::exchange(line_, {});
    const bool blank = line.text.find_first_not_of(" \t\r") == std::string::npos;
    if (!blank || line.too_long) on_line(std::move(line));
}

bool write_all(
    int fd,
    std::string_view bytes,
    const std::atomic<bool>& ending,
    std::chrono::milliseconds patience
) {
    using std::chrono::steady_clock;
    constexpr int kLook = 100;  // ms between two looks at `ending`
    auto stuck_since = steady_clock::now();
    while (!bytes.empty()) {
        // No more than a writable pipe takes without blocking: the descriptor is shared with others
        // and stays blocking.
        pollfd file{fd, POLLOUT, 0};
        if (poll(&file, 1, kLook) <= 0) {
            if (!ending) stuck_since = steady_clock::now();
            if (steady_clock::now() - stuck_since >= patience) return false;
            continue;
        }
        const auto written = write(fd, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
        if (written < 0) {
            if (!again(errno)) return false;
            continue;
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
        stuck_since = steady_clock::now();
    }
    return true;
}

}  // namespace outboxd::mcp
