// SPDX-License-Identifier: Apache-2.0
#include "tools/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/base/strings.h"

namespace brigade::tools {
namespace {

Status system_error(std::string_view what, int error) {
  return internal_error(str_cat(what, ": ", std::strerror(error)));
}

/// The set-up of a child: fresh signal state, own process group, no input, only its standard error
/// kept.
class SpawnSetup {
 public:
  SpawnSetup() {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&files_);
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&files_);
  }

  int spawn(pid_t& pid, std::vector<char*>& argv) {
    return posix_spawn(&pid, argv[0], &files_, &attributes_, argv.data(), environ);
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t files_{};
};

}  // namespace

std::string ProcessEnd::describe() const {
  if (signal != 0) return str_cat("was killed by signal ", signal, " (", strsignal(signal), ")");
  return str_cat("exited with code ", code);
}

Result<Process> Process::start(const std::vector<std::string>& argv) {
  INVARIANT(!argv.empty()) << "a process needs a program";
  std::vector<std::string> words = argv;
  std::vector<char*> pointers;
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  if (const int error = SpawnSetup().spawn(pid, pointers); error != 0) {
    return system_error(str_cat("cannot start ", argv[0]), error);
  }
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    const int error = errno;
    kill(pid, SIGKILL);  // our child, not yet reaped: the pid is still its own
    waitpid(pid, nullptr, 0);
    return system_error("pidfd_open", error);
  }
  return Process(pid, pidfd);
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::exchange(other.pidfd_, -1)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    end_now();
    pid_ = std::exchange(other.pid_, -1);
    pidfd_ = std::exchange(other.pidfd_, -1);
  }
  return *this;
}

Process::~Process() {
  end_now();
}

void Process::end_now() {
  if (pidfd_ < 0) return;
  signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(pidfd_);
  pidfd_ = -1;
}

std::optional<ProcessEnd> Process::try_wait() {
  if (pidfd_ < 0) return std::nullopt;
  int raw = 0;
  pid_t reaped = 0;
  do {
    reaped = waitpid(pid_, &raw, WNOHANG);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == 0) return std::nullopt;
  INVARIANT_EQ(reaped, pid_) << "a child is reaped by its Process alone";
  close(pidfd_);
  pidfd_ = -1;
  if (WIFSIGNALED(raw)) return ProcessEnd{.code = 0, .signal = WTERMSIG(raw)};
  return ProcessEnd{.code = WEXITSTATUS(raw), .signal = 0};
}

void Process::signal(int number) const {
  if (pidfd_ >= 0) syscall(SYS_pidfd_send_signal, pidfd_, number, nullptr, 0);
}

Result<std::string> sibling_program(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return internal_error(str_cat("cannot read /proc/self/exe: ", error.message()));
  const std::filesystem::path path = self.parent_path() / name;
  if (access(path.c_str(), X_OK) != 0) {
    return not_found(str_cat("the program ", path.string(), " is missing: run tools/build"));
  }
  return path.string();
}

}  // namespace brigade::tools
