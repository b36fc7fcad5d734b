// SPDX-License-Identifier: Apache-2.0
#include "router/process/trace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/log.h"
#include "common/base/strings.h"
#include "router/core/trace.h"

namespace brigade::router {

Result<std::unique_ptr<TraceFile>> TraceFile::open(const std::string& path, Limits limits) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (fd < 0) {
    return invalid_argument(
        str_cat("cannot write the trace ", quoted(path, 200), ": ", std::strerror(errno)));
  }
  return std::unique_ptr<TraceFile>(new TraceFile(fd, path, limits));
}

TraceFile::TraceFile(int fd, std::string path, Limits limits)
    : fd_(fd), path_(std::move(path)), limits_(limits), thread_([this] { run(); }) {}

TraceFile::~TraceFile() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
  ::close(fd_);
}

void TraceFile::write(std::string line) {
  std::string why;
  {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    line += '\n';
    if (num_bytes_ + line.size() > limits_.max_bytes) {
      why = str_cat("it has reached its bound of ", limits_.max_bytes, " bytes");
    } else if (queued_bytes_ + line.size() > limits_.max_queued_bytes) {
      why = str_cat("the disk is ", queued_bytes_, " bytes behind");
    }
    if (!why.empty()) {
      ended_ = true;
      line = Trace::end_line(why) + "\n";
    }
    num_bytes_ += line.size();
    queued_bytes_ += line.size();
    lines_.push_back(std::move(line));
  }
  changed_.notify_one();
  if (!why.empty()) log_warning(str_cat("the trace ", path_, " ends here: ", why));
}

void TraceFile::run() {
  std::deque<std::string> lines;
  std::string text;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return closing_ || !lines_.empty(); });
      if (lines_.empty()) return;
      lines.swap(lines_);
    }
    text.clear();
    for (const std::string& line : lines)
      text += line;
    lines.clear();
    write_all(text);
    std::lock_guard lock(mutex_);
    queued_bytes_ -= text.size();
  }
}

void TraceFile::write_all(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(fd_, text.data() + done, text.size() - done);
    if (count >= 0) {
      done += static_cast<std::size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    const std::string why = std::strerror(errno);
    std::lock_guard lock(mutex_);
    if (!std::exchange(ended_, true)) {
      log_warning(str_cat("the trace ", path_, " ends here: ", why));
    }
    return;
  }
}

}  // namespace brigade::router
