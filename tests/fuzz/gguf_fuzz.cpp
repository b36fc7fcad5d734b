// SPDX-License-Identifier: Apache-2.0
/// A GGUF file of any bytes is read or refused, and what is read keeps its promises: all metadata
/// can be looked at, every tensor's first and last bytes can be read.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/model/gguf.h"
#include "common/model/spec.h"

namespace {

using brigade::model::GgufFile;
using brigade::model::TensorInfo;

/// A file without a name, kept for all inputs.
int scratch_file() {
  static const int kFile = memfd_create("fuzz.gguf", MFD_CLOEXEC);
  return kFile;
}

void must(bool holds) {
  if (!holds) std::abort();
}

void look_at(const GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    must(!describe(value).empty());
    (void)file.integer(key);
    (void)file.number(key);
    (void)file.strings(key);
    (void)file.integers(key);
    (void)file.numbers(key);
  }
  std::array<std::byte, 64> ends{};
  for (const TensorInfo& tensor : file.tensors()) {
    must(file.find_tensor(tensor.name) == &tensor);
    must(tensor.bytes == static_cast<std::uint64_t>(tensor.rows * tensor.row_bytes()));
    const auto some = std::span(ends).first(std::min<std::size_t>(ends.size(), tensor.bytes));
    must(tensor.read(0, some).ok());
    must(tensor.read(tensor.bytes - some.size(), some).ok());
  }
  const auto spec = read_spec(file);
  if (spec.ok()) must(spec->num_layers > 0 && spec->hidden_size > 0 && spec->vocab_size > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int fd = scratch_file();
  must(ftruncate(fd, 0) == 0);
  must(pwrite(fd, data, size, 0) == static_cast<ssize_t>(size));
  const auto file = GgufFile::open("/proc/self/fd/" + std::to_string(fd));
  if (file.ok()) {
    look_at(**file);
  } else {
    must(!file.status().message().empty());
  }
  return 0;
}
