// SPDX-License-Identifier: Apache-2.0
#include "common/base/signals.h"

#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "common/base/check.h"

namespace brigade {
namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals)
    sigaddset(&set, signal);
  return set;
}

}  // namespace

void block_signals(std::initializer_list<int> signals) {
  const sigset_t set = set_of(signals);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

FileDescriptor open_signals(std::initializer_list<int> signals) {
  const sigset_t set = set_of(signals);
  FileDescriptor fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  INVARIANT(fd.valid()) << std::strerror(errno);
  return fd;
}

std::optional<int> take_signal(const FileDescriptor& signals) {
  signalfd_siginfo info{};
  if (read(signals.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

FileDescriptor watch_parent(pid_t parent) {
  FileDescriptor fd(static_cast<int>(syscall(SYS_pidfd_open, parent, 0)));
  // After opening: a parent that died before it, or another process with its number, is not our
  // parent.
  if (getppid() != parent) fd.reset(-1);
  return fd;
}

}  // namespace brigade
