// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/process/guardian.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <initializer_list>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/strings.h"

namespace brigade::worker {
namespace {

constexpr std::initializer_list<int> kStopSignals = {SIGINT, SIGTERM, SIGHUP};

int poll_timeout_ms(TimePoint deadline) {
  if (deadline == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

}  // namespace

void block_stop_signals() {
  block_signals(kStopSignals);
}

Guardian::Guardian(Options options)
    : options_(std::move(options)),
      signals_(open_signals(kStopSignals)),
      quit_(eventfd(0, EFD_CLOEXEC)) {
  INVARIANT(quit_.valid()) << std::strerror(errno);
  if (options_.expected_parent) {
    parent_ = watch_parent(*options_.expected_parent);
    orphan_ = !parent_.valid();
  }
  thread_ = std::thread([this] { watch(); });
}

Guardian::~Guardian() {
  const std::uint64_t one = 1;
  INVARIANT(write(quit_.get(), &one, sizeof one) == sizeof one) << std::strerror(errno);
  thread_.join();
}

std::optional<std::string> Guardian::next_reason(TimePoint deadline) {
  pollfd fds[] = {
      {quit_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {parent_.get(), POLLIN, 0}};
  for (;;) {
    const int ready = poll(fds, std::size(fds), poll_timeout_ms(deadline));
    if (ready < 0 && errno == EINTR) continue;
    INVARIANT(ready >= 0) << std::strerror(errno);
    told_to_quit_ = (fds[0].revents & POLLIN) != 0;
    if (told_to_quit_ || ready == 0) return std::nullopt;
    if (const std::optional<int> signal = take_signal(signals_)) {
      return str_cat("signal ", strsignal(*signal));
    }
    if (fds[2].revents != 0) {
      parent_.reset(-1);
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
  if (told_to_quit_) return;
  log_info(str_cat("ends: ", *reason));
  options_.on_stop(*reason);
  const TimePoint deadline = Clock::now() + options_.grace;
  reason = next_reason(deadline);
  if (told_to_quit_) return;
  log_warning(reason ? str_cat("ends at once: ", *reason) : "did not end in time: ends at once");
  options_.last_words();
  _exit(1);
}

}  // namespace brigade::worker
