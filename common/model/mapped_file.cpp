// SPDX-License-Identifier: Apache-2.0
#include "common/model/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/strings.h"

namespace brigade::model {
namespace {

Status system_error(const std::string& path, const char* what) {
  const int error = errno;
  const std::string message = str_cat(what, " ", quoted(path, 512), ": ", std::strerror(error));
  return error == ENOENT ? not_found(message) : unavailable(message);
}

Result<std::span<const std::byte>> map(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return system_error(path, "cannot stat");
  if (!S_ISREG(info.st_mode)) {
    return invalid_argument(str_cat(quoted(path, 512), " is not a regular file"));
  }
  if (info.st_size == 0) return data_loss(str_cat(quoted(path, 512), " is empty"));
  const auto size = static_cast<std::size_t>(info.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (address == MAP_FAILED) return system_error(path, "cannot map");
  return std::span<const std::byte>(static_cast<const std::byte*>(address), size);
}

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return system_error(path, "cannot open");
  auto bytes = map(fd, path);
  ::close(fd);
  if (!bytes.ok()) return bytes.status();
  return std::unique_ptr<MappedFile>(new MappedFile(*bytes));
}

MappedFile::~MappedFile() {
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace brigade::model
