// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/guardian.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::worker {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&set, signal);
  return set;
}

int poll_timeout_ms(TimePoint deadline) {
  if (deadline == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Guardian::Guardian(Options options) : options_(std::move(options)) {
  const sigset_t set = stop_signals();
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  quit_fd_ = eventfd(0, EFD_CLOEXEC);
  INVARIANT(signal_fd_ >= 0 && quit_fd_ >= 0) << std::strerror(errno);
  if (options_.expected_parent) {
    parent_fd_ = static_cast<int>(syscall(SYS_pidfd_open, *options_.expected_parent, 0));
    // After opening: a parent that died before it, or another process with its number, is not our
    // parent.
    orphan_ = parent_fd_ < 0 || getppid() != *options_.expected_parent;
  }
  thread_ = std::thread([this] { watch(); });
}

Guardian::~Guardian() {
  const std::uint64_t one = 1;
  INVARIANT(write(quit_fd_, &one, sizeof one) == sizeof one) << std::strerror(errno);
  thread_.join();
  for (int fd : {signal_fd_, parent_fd_, quit_fd_}) {
    if (fd >= 0) close(fd);
  }
}

std::optional<std::string> Guardian::next_reason(TimePoint deadline) {
  pollfd fds[] = {{quit_fd_, POLLIN, 0}, {signal_fd_, POLLIN, 0}, {parent_fd_, POLLIN, 0}};
  for (;;) {
    const int ready = poll(fds, std::size(fds), poll_timeout_ms(deadline));
    if (ready < 0 && errno == EINTR) continue;
    INVARIANT(ready >= 0) << std::strerror(errno);
    quit_ = (fds[0].revents & POLLIN) != 0;
    if (quit_ || ready == 0) return std::nullopt;
    signalfd_siginfo info{};
    if (read(signal_fd_, &info, sizeof info) == sizeof info) {
      return str_cat("signal ", strsignal(static_cast<int>(info.ssi_signo)));
    }
    if (fds[2].revents != 0) {
      fds[2].fd = -1;
      close(parent_fd_);
      parent_fd_ = -1;
      return str_cat("process ", *options_.expected_parent, ", which started this one, is gone");
    }
  }
}

void Guardian::watch() {
  std::optional<std::string> reason;
  if (orphan_) {
    reason = str_cat("process ", *options_.expected_parent, " is not this one's parent");
  } else {
    reason = next_reason(kNever);
  }
  if (quit_) return;
  log_info(str_cat("ends: ", *reason));
  options_.on_stop(*reason);
  const TimePoint deadline = Clock::now() + options_.grace;
  reason = next_reason(deadline);
  if (quit_) return;
  log_warning(reason ? str_cat("ends at once: ", *reason) : "did not end in time: ends at once");
  options_.last_words();
  _exit(1);
}

}  // namespace brigade::worker
