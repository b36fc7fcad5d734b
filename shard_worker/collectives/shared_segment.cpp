// SPDX-License-Identifier: Apache-2.0
#include "shard_worker/collectives/shared_segment.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "common/base/strings.h"

namespace brigade::worker {
namespace {

Status shm_error(const char* call, const std::string& name, int error) {
  return unavailable(str_cat(call, " of shared memory ", name, ": ", std::strerror(error)));
}

/// Gives the object its size, with memory behind it: a full /dev/shm is an error here, not a SIGBUS
/// later.
Status reserve(int fd, const std::string& name, std::size_t bytes) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return shm_error("fstat", name, errno);
  if (info.st_size != 0 && static_cast<std::size_t>(info.st_size) != bytes) {
    return data_loss(str_cat("shared memory ", name, " has ", info.st_size, " bytes, not ", bytes));
  }
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  return error == 0 ? Status{} : shm_error("reservation", name, error);
}

}  // namespace

Result<std::unique_ptr<SharedSegment>> SharedSegment::open(const std::string& name, int size,
                                                           std::size_t slot_bytes) {
  std::unique_ptr<SharedSegment> segment(new SharedSegment);
  const auto num_ranks = static_cast<std::size_t>(size);
  const std::size_t control = sizeof(GroupControl) + num_ranks * sizeof(RankControl);
  segment->name_ = name;
  segment->bytes_ = control + num_ranks * 2 * slot_bytes;
  segment->slot_bytes_ = slot_bytes;
  segment->fd_ = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (segment->fd_ < 0) return shm_error("open", name, errno);
  segment->linked_ = true;
  RETURN_IF_ERROR(reserve(segment->fd_, name, segment->bytes_));
  void* memory =
      mmap(nullptr, segment->bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd_, 0);
  if (memory == MAP_FAILED) return shm_error("mmap", name, errno);
  segment->memory_ = memory;
  auto* base = static_cast<std::byte*>(memory);
  segment->group_ = reinterpret_cast<GroupControl*>(base);
  segment->ranks_ = reinterpret_cast<RankControl*>(base + sizeof(GroupControl));
  segment->slots_ = base + control;
  return segment;
}

SharedSegment::~SharedSegment() {
  unlink();
  if (memory_ != nullptr) munmap(memory_, bytes_);
  if (fd_ >= 0) close(fd_);
}

void SharedSegment::unlink() noexcept {
  if (!linked_) return;
  linked_ = false;
  // A peer may have unlinked the name already, and a later group may have taken it: compare before
  // unlinking.
  const int fd = shm_open(name_.c_str(), O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return;
  struct stat mine {};
  struct stat named {};
  if (fstat(fd_, &mine) == 0 && fstat(fd, &named) == 0 && mine.st_ino == named.st_ino) {
    shm_unlink(name_.c_str());
  }
  close(fd);
}

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, TimePoint deadline) {
  const auto left = std::max(Duration::zero(), Duration(deadline - Clock::now()));
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000,
                         .tv_nsec = left.count() % 1'000'000'000};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, expected, &timeout,
          nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr,
          0);
}

}  // namespace brigade::worker
