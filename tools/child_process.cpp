#include "tools/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace tools {
namespace {

struct FileActions {
    posix_spawn_file_actions_t value{};
    FileActions() { posix_spawn_file_actions_init(&value); }
    ~FileActions() { posix_spawn_file_actions_destroy(&value); }
    FileActions(const FileActions&) = delete;
    FileActions& operator=(const FileActions&) = delete;
};

struct Attributes {
    posix_spawnattr_t value{};
    Attributes() { posix_spawnattr_init(&value); }
    ~Attributes() { posix_spawnattr_destroy(&value); }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
};

// A file in memory instead of a pipe: the child can read it at its own pace or not at all, and
// nobody here has to write, wait or get a SIGPIPE.
Descriptor input_file(const std::string& input) {
    if (input.empty()) return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    Descriptor file(::memfd_create("outbox-stdin", MFD_CLOEXEC));
    std::size_t written = 0;
    while (file.valid() && written < input.size()) {
        const auto n = ::write(file.get(), input.data() + written, input.size() - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return {};
        written += static_cast<std::size_t>(n);
    }
    if (file.valid() && ::lseek(file.get(), 0, SEEK_SET) != 0) return {};
    return file;
}

bool make_pipe(Descriptor& read_end, Descriptor& write_end) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = Descriptor(ends[0]);
    write_end = Descriptor(ends[1]);
    return true;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> out;
    out.reserve(texts.size() + 1);
    for (const auto& text : texts) out.push_back(const_cast<char*>(text.c_str()));
    out.push_back(nullptr);
    return out;
}

// A group of its own, no blocked signals, and the default reaction to each: the daemon's own
// settings (it ignores SIGPIPE) are not the command's business.
void set_attributes(posix_spawnattr_t& attributes) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    );
}

}  // namespace

void Descriptor::reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

Spawned spawn(const ProcessSpec& spec) {
    Spawned child;
    Descriptor output;
    Descriptor errors;
    const auto input = input_file(spec.input);
    if (!input.valid() || !make_pipe(child.output, output) || !make_pipe(child.errors, errors)) {
        child.error = errno;
        return child;
    }
    FileActions actions;
    posix_spawn_file_actions_adddup2(&actions.value, input.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions.value, output.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions.value, errors.get(), STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions.value, STDERR_FILENO + 1);
    if (!spec.directory.empty()) {
        posix_spawn_file_actions_addchdir_np(&actions.value, spec.directory.c_str());
    }
    Attributes attributes;
    set_attributes(attributes.value);
    const auto argv = pointers(spec.argv);
    const auto environment = pointers(spec.environment);
    child.error = ::posix_spawnp(
        &child.pid, argv[0], &actions.value, &attributes.value, argv.data(), environment.data()
    );
    if (child.error != 0) return child;
    child.handle = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child.pid, 0)));
    return child;
}

}  // namespace tools
