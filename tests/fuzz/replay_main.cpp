// SPDX-License-Identifier: Apache-2.0
/// Stands in for libFuzzer where a target is built by any compiler: runs every file of the folders
/// given once, each also cut short and with single bytes changed.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

/// Changes spread over an input, few enough for a test.
constexpr std::size_t kVariants = 64;

void run(const Bytes& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void run_variants(const Bytes& bytes) {
  run(bytes);
  const std::size_t step = bytes.size() / kVariants + 1;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    run(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at)));
    Bytes changed = bytes;
    changed[at] ^= 0xff;
    run(changed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream file(entry.path(), std::ios::binary);
      run_variants({std::istreambuf_iterator<char>(file), {}});
      ++count;
    }
  }
  std::printf("%zu inputs and their variants\n", count);
  return count == 0 ? 1 : 0;
}
