// SPDX-License-Identifier: Apache-2.0
#include "common/model/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/strings.h"

namespace brigade::model {
namespace {

Status system_error(const std::string& path, const char* what) {
  const int error = errno;
  const std::string message = str_cat(what, " ", quoted(path, 512), ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return not_found(message);
  return error == EACCES ? Status(StatusCode::kPermissionDenied, message) : unavailable(message);
}

}  // namespace

Result<std::shared_ptr<const FileSource>> FileSource::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error(path, "cannot open");
  std::shared_ptr<FileSource> file(new FileSource(path, fd));
  struct stat info {};
  if (fstat(fd, &info) != 0) return system_error(path, "cannot stat");
  if (S_ISDIR(info.st_mode)) {
    return invalid_argument(
        str_cat(quoted(path, 512), " is a folder: name the .gguf file inside it"));
  }
  if (!S_ISREG(info.st_mode)) {
    return invalid_argument(str_cat(quoted(path, 512), " is not a regular file"));
  }
  if (info.st_size == 0) {
    return data_loss(str_cat(quoted(path, 512), " is empty: was its download interrupted?"));
  }
  file->size_ = static_cast<std::uint64_t>(info.st_size);
  return std::shared_ptr<const FileSource>(std::move(file));
}

FileSource::~FileSource() {
  ::close(fd_);
}

Status FileSource::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path_, "cannot read");
    if (count == 0) {
      return data_loss(str_cat(quoted(path_, 512), " ends at byte ", offset,
                               ": it was cut short after it was opened at ", size_, " bytes"));
    }
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Status MemorySource::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
    return data_loss(
        str_cat(out.size(), " bytes are wanted at ", offset, " of ", bytes_.size(), " in memory"));
  }
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return {};
}

}  // namespace brigade::model
