// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "common/base/random.h"
#include "common/base/strings.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/tiny_model.h"

namespace brigade::model {
namespace {

using test::GgufBuilder;
using test::TempFile;

Result<std::shared_ptr<const GgufFile>> open_bytes(const std::string& bytes) {
  return GgufFile::open(TempFile(bytes).path());  // the open file outlives its name
}

std::vector<float> ramp(std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i)
    values[i] = static_cast<float>(i) / 8 - 3;
  return values;
}

/// One of everything that can be read.
GgufBuilder everything(std::uint32_t version = 3) {
  GgufBuilder builder(version);
  builder.add_string("name", "small").add_u32("count", 7).add_u64("wide", 1ULL << 40U);
  builder.add_f32("eps", 0.5F).add_bool("flag", true);
  builder.add_strings("words", {"a", "", "ccc"}).add_i32s("numbers", {-1, 2});
  builder.add_f32s("scores", {0.25F, -4});
  builder.add_tensor("f32", TensorType::kF32, 2, 3, ramp(6));
  builder.add_tensor("f16", TensorType::kF16, 0, 5, ramp(5));
  builder.add_tensor("bf16", TensorType::kBF16, 2, 2, ramp(4));
  builder.add_tensor("q8_0", TensorType::kQ8_0, 2, 32, ramp(64));
  builder.add_tensor("q4_1", TensorType::kQ4_1, 1, 64, ramp(64));
  return builder;
}

/// The bytes open with an error that has `part` in its message.
void check_refused(const std::string& bytes, std::string_view part) {
  const auto file = open_bytes(bytes);
  REQUIRE_FALSE(file.ok());
  CHECK_MESSAGE(file.status().message().find(part) != std::string::npos, file.status().message());
}

void patch_u64(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// Where the number after `text` (a name or key, and its type or dimension fields) begins.
std::size_t after(const std::string& bytes, std::string_view text, std::size_t skip) {
  const std::size_t at = bytes.find(text);
  REQUIRE(at != std::string::npos);
  return at + text.size() + skip;
}

}  // namespace

TEST_CASE("keys of every kind and tensors of every readable type are found in versions 2 and 3") {
  for (std::uint32_t version : {2U, 3U}) {
    const auto opened = open_bytes(everything(version).build());
    REQUIRE_MESSAGE(opened.ok(), opened.status().message());
    const GgufFile& file = **opened;
    CHECK(file.version() == version);
    CHECK(*file.string("name") == "small");
    CHECK(*file.integer("count") == 7);
    CHECK(*file.integer("wide") == (1LL << 40));
    CHECK(*file.number("eps") == 0.5);
    CHECK(*file.number("count") == 7.0);
    CHECK(*file.boolean("flag"));
    CHECK(*file.strings("words") == std::vector<std::string_view>{"a", "", "ccc"});
    CHECK(*file.integers("numbers") == std::vector<std::int64_t>{-1, 2});
    CHECK(*file.numbers("scores") == std::vector<double>{0.25, -4});
    REQUIRE(file.tensors().size() == 5);
    const TensorInfo* q8 = file.find_tensor("q8_0");
    REQUIRE(q8 != nullptr);
    CHECK(q8->rows == 2);
    CHECK(q8->cols == 32);
    CHECK(q8->row_bytes() == 34);
    CHECK(q8->bytes == 68);
    CHECK(file.find_tensor("f16")->rows == 1);
    CHECK(file.find_tensor("q4_1")->bytes == 40);
    const TensorInfo* f32 = file.find_tensor("f32");
    CHECK(*f32->read_floats() == ramp(6));
    CHECK(*file.find_tensor("f16")->read_floats() == ramp(5));
    CHECK(*file.find_tensor("bf16")->read_floats() == ramp(4));
    CHECK(q8->read_floats().status().code() == StatusCode::kInvalidArgument);
    CHECK(file.find_tensor("none") == nullptr);
  }
}

TEST_CASE("a key that is missing or of another type gives an error that names it") {
  const auto opened = open_bytes(everything().build());
  REQUIRE(opened.ok());
  const GgufFile& file = **opened;
  CHECK(file.integer("gone").status().code() == StatusCode::kNotFound);
  CHECK(file.integer("gone").status().message() == "key \"gone\" is missing");
  CHECK(file.integer("name").status().code() == StatusCode::kDataLoss);
  CHECK(file.string("count").status().message() == "key \"count\" is not a string");
  CHECK_FALSE(file.integer("eps").ok());
  CHECK_FALSE(file.number("flag").ok());
  CHECK_FALSE(file.strings("numbers").ok());
  CHECK_FALSE(file.integers("words").ok());
  CHECK_FALSE(file.numbers("numbers").ok());
}

TEST_CASE("a file cut short anywhere is refused") {
  const std::string bytes = everything().build();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE_MESSAGE(open_bytes(bytes.substr(0, size)).ok(), "cut at " << size);
  }
}

TEST_CASE("a header with any byte changed is read or refused, without a crash") {
  const std::string bytes = everything().build();
  const std::size_t header = bytes.find("q4_1") + 60;
  for (std::size_t at = 0; at < header; ++at) {
    for (std::uint8_t flip : {0x01, 0x80, 0xff}) {
      std::string mutated = bytes;
      mutated[at] = static_cast<char>(mutated[at] ^ flip);
      const auto opened = open_bytes(mutated);
      if (!opened.ok()) {
        CHECK_FALSE(opened.status().message().empty());
        continue;
      }
      for (const TensorInfo& tensor : (*opened)->tensors()) {  // what is promised can be read
        REQUIRE(tensor.bytes == static_cast<std::uint64_t>(tensor.rows * tensor.row_bytes()));
        std::vector<std::byte> stored(tensor.bytes);
        CHECK(tensor.read(0, stored).ok());
      }
    }
  }
}

TEST_CASE("the digest follows header and size, not the weights") {
  const std::string bytes = everything().build();
  const std::string digest = (*open_bytes(bytes))->digest();
  CHECK(digest.size() == 64);
  std::string other_weights = bytes;
  other_weights.back() ^= 1;
  CHECK((*open_bytes(other_weights))->digest() == digest);
  CHECK((*open_bytes(bytes + '\0'))->digest() != digest);
  CHECK((*open_bytes(everything(2).build()))->digest() != digest);
}

TEST_CASE("counts and lengths that the file cannot hold are refused before memory is taken") {
  const std::string bytes = everything().build();
  for (std::uint64_t huge : {~0ULL, 1ULL << 63U, 1ULL << 32U, 100'000ULL}) {
    std::string tensors = bytes;
    patch_u64(tensors, 8, huge);
    check_refused(tensors, "tensor count is");
    std::string keys = bytes;
    patch_u64(keys, 16, huge);
    check_refused(keys, "key count is");
    std::string items = bytes;
    patch_u64(items, after(items, "numbers", 8), huge);
    check_refused(items, "key \"numbers\" claims");
    std::string text = bytes;
    patch_u64(text, after(text, "name", 4), huge);
    check_refused(text, "key \"name\"");
  }
}

TEST_CASE("what is not little-endian GGUF 2 or 3 is refused") {
  std::string bytes = everything().build();
  bytes[4] = 4;
  check_refused(bytes, "GGUF version 4; 2 and 3");
  bytes[4] = 1;
  check_refused(bytes, "GGUF version 1, which is obsolete");
  bytes[4] = 0;
  bytes[7] = 3;
  check_refused(bytes, "big-endian");
  CHECK(GgufFile::open("/nonexistent/x.gguf").status().code() == StatusCode::kNotFound);
  CHECK(GgufFile::open("/tmp").status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("keys and tensors that appear twice are refused by name") {
  check_refused(GgufBuilder().add_u32("k", 1).add_u32("k", 1).build(), "key \"k\" is there twice");
  GgufBuilder builder;
  builder.add_tensor("t", TensorType::kF32, 0, 2, ramp(2));
  builder.add_tensor("t", TensorType::kF32, 0, 2, ramp(2));
  check_refused(builder.build(), "tensor \"t\" is there twice");
}

TEST_CASE("values that no reader can use are refused by name") {
  const std::string nested("\x09\0\0\0\x01\0\0\0\0\0\0\0", 12);
  check_refused(GgufBuilder().add_raw("k", 9, nested).build(), "key \"k\" is an array of arrays");
  check_refused(GgufBuilder().add_raw("k", 13, "xxxx").build(), "unknown value type 13");
  check_refused(GgufBuilder().add_raw("k", 7, "\x02").build(), "is a bool with the value 2");
  check_refused(GgufBuilder().add_raw("", 7, "\x01").build(), "name of key 0 is empty");
  const std::string wide_items =
      std::string("\x0a\0\0\0\x01\0\0\0\0\0\0\0", 12) + std::string(8, '\xff');
  check_refused(GgufBuilder().add_raw("k", 9, wide_items).build(), "does not fit 63 bits");
}

TEST_CASE("alignment is honoured and its value checked") {
  GgufBuilder builder;
  builder.set_alignment(64).add_tensor("a", TensorType::kF32, 0, 1, ramp(1));
  builder.add_tensor("b", TensorType::kF32, 0, 1, ramp(1));
  const auto opened = open_bytes(builder.build());
  REQUIRE(opened.ok());
  CHECK((*opened)->find_tensor("b")->offset - (*opened)->find_tensor("a")->offset == 64);
  for (std::uint32_t bad : {0U, 3U, 4U, 1U << 17U}) {
    check_refused(GgufBuilder().add_u32("general.alignment", bad).build(), "general.alignment");
  }
  check_refused(GgufBuilder().add_string("general.alignment", "32").build(), "not an integer");
}

TEST_CASE("tensors with shapes, types or places that cannot be are refused by name") {
  const auto tensor = [](const std::vector<std::uint64_t>& dims, std::uint32_t type) {
    return GgufBuilder().add_raw_tensor("t", dims, type, std::string(256, 'x')).build();
  };
  check_refused(tensor({256, 1}, 29), "tensor \"t\" is stored as IQ1_M (29)");
  check_refused(tensor({32, 1}, 255), "unknown type (255)");
  check_refused(tensor({4}, 4), "Q4_2, removed from ggml (4)");
  check_refused(tensor({}, 0), "0 dimensions");
  check_refused(tensor({1, 1, 1, 1, 1}, 0), "5 dimensions");
  check_refused(tensor({2, 2, 2, 2}, 0), "3 can be used");
  check_refused(tensor({0, 2}, 0), "the size 0");
  check_refused(tensor({1ULL << 63U, 2}, 0), "the size");
  check_refused(tensor({(1ULL << 31U) - 1, (1ULL << 31U) - 1}, 0), "needs");
  check_refused(tensor({33, 1}, 8), "33 columns, not a multiple of 32");
  check_refused(tensor({65, 1}, 0), "is the file cut short?");
  std::string overlapping = GgufBuilder()
                                .add_tensor("first", TensorType::kF32, 0, 16, ramp(16))
                                .add_tensor("second", TensorType::kF32, 0, 16, ramp(16))
                                .build();
  patch_u64(overlapping, after(overlapping, "second", 16), 32);
  check_refused(overlapping, "tensors \"first\" and \"second\" overlap");
  patch_u64(overlapping, after(overlapping, "second", 16), 33);
  check_refused(overlapping, "not a multiple of 32");
  check_refused(GgufBuilder().add_raw_tensor(std::string(257, 'n'), {1}, 0, "xxxx").build(),
                "name of tensor 0 is 257 bytes long");
}

TEST_CASE("a stack of matrices is read as rows, and says how many it has") {
  const std::string bytes =
      GgufBuilder().add_raw_tensor("experts", {32, 3, 5}, 0, std::string(1920, 'x')).build();
  const auto opened = open_bytes(bytes);
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  const TensorInfo* experts = (*opened)->find_tensor("experts");
  CHECK(experts->rows == 15);
  CHECK(experts->cols == 32);
  CHECK(experts->num_matrices == 5);
}

TEST_CASE("what is not GGUF is called by its name, with what to do") {
  using namespace std::string_literals;
  const std::vector<std::pair<std::string, std::string_view>> table = {
      {"%PDF-1.7\n"s, "a PDF document"},
      {"<!DOCTYPE html><html>"s, "a web page; the download gave a page"},
      {"version https://git-lfs.github.com/spec/v1\n"s, "`git lfs pull`"},
      {"\x50\x1f\x03\0\0\0\0\0{\"__metadata__\":"s, "safetensors; convert it"},
      {"PK\x03\x04\x14\0"s, "a PyTorch checkpoint; convert it"},
      {"lmgg\x01\0\0\0"s, "a GGML file of before GGUF"},
      {"{\"architectures\": []}"s, "JSON"},
      {"Dear user,\n"s, "text"},
      {"GG"s, "text"},
      {"\x7f\x45LF\x02"s, "it begins with"},
  };
  for (const auto& [bytes, part] : table) {
    check_refused(bytes, part);
    check_refused(bytes, "not a GGUF file but"s.substr(0, 15));
  }
}

TEST_CASE("a file that is cut short after it was opened gives an error and no signal") {
  const TempFile temp(everything().build());
  const auto opened = GgufFile::open(temp.path());
  REQUIRE(opened.ok());
  const TensorInfo* last = (*opened)->find_tensor("q4_1");
  std::vector<std::byte> stored(last->bytes);
  CHECK(last->read(0, stored).ok());
  CHECK_FALSE(last->read(1, stored).ok());
  std::filesystem::resize_file(temp.path(), last->offset + 1);
  const Status status = last->read(0, stored);
  CHECK(status.code() == StatusCode::kDataLoss);
  CHECK(status.message().find("was cut short after it was opened") != std::string::npos);
}

TEST_CASE("a file that is replaced after it was opened is read as it was") {
  const TempFile temp(everything().build());
  const auto opened = GgufFile::open(temp.path());
  REQUIRE(opened.ok());
  const TensorInfo* tensor = (*opened)->find_tensor("q4_1");
  std::vector<std::byte> before(tensor->bytes);
  REQUIRE(tensor->read(0, before).ok());
  const TempFile other(everything(2).build().substr(0, 100));
  std::filesystem::rename(other.path(), temp.path());
  std::vector<std::byte> after(tensor->bytes);
  CHECK(tensor->read(0, after).ok());
  CHECK(before == after);
  CHECK_FALSE(GgufFile::open(temp.path()).ok());
}

TEST_CASE("a pipe or a device is refused without waiting for it, a link to a file is followed") {
  const TempFile temp(everything().build());
  const std::string pipe = temp.path() + ".pipe";
  const std::string link = temp.path() + ".link";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink(temp.path(), link);
  for (const std::string& path : {pipe, std::string("/dev/zero")}) {
    const Status status = GgufFile::open(path).status();
    CHECK(status.message().find("is not a regular file") != std::string::npos);
  }
  CHECK(GgufFile::open(link).ok());
  std::filesystem::remove(pipe);
  std::filesystem::remove(link);
}

namespace {

/// The parts of a model in a folder of their own.
class PartsFolder {
 public:
  PartsFolder() {
    static int counter = 0;
    folder_ = std::filesystem::temp_directory_path() /
              str_cat("brigade-parts-", getpid(), "-", counter++);
    std::filesystem::create_directory(folder_);
  }
  ~PartsFolder() { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(int number, int count) const {
    return folder_ / str_cat("m-0000", number, "-of-0000", count, ".gguf");
  }
  /// Part `number` (from 1) with one tensor of that name, which says it is `index` of `count`.
  void write(int number, int count, std::uint32_t index, std::uint32_t says_count,
             std::uint32_t num_tensors, std::string_view tensor = "") const {
    GgufBuilder builder;
    builder.add_u32("split.no", index).add_u32("split.count", says_count);
    builder.add_u32("split.tensors.count", num_tensors);
    if (number == 1) builder.add_string("name", "whole");
    builder.add_tensor(tensor.empty() ? str_cat("t", number) : std::string(tensor),
                       TensorType::kF32, 0, 2, std::vector<float>{1.0F * number, 2});
    std::ofstream(path(number, count), std::ios::binary) << builder.build();
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace

TEST_CASE("a model in parts is opened by its first") {
  const PartsFolder parts;
  for (int i = 1; i <= 3; ++i)
    parts.write(i, 3, static_cast<std::uint32_t>(i - 1), 3, 3);
  const auto opened = GgufFile::open(parts.path(1, 3));
  REQUIRE_MESSAGE(opened.ok(), opened.status().message());
  CHECK((*opened)->num_parts() == 3);
  CHECK(*(*opened)->string("name") == "whole");
  CHECK((*opened)->name() == "m");
  for (float i : {1.0F, 2.0F, 3.0F}) {
    CHECK(*(*opened)->find_tensor(str_cat("t", i))->read_floats() == std::vector<float>{i, 2});
  }
}

TEST_CASE("parts that are missing, of another model or out of order are refused by name") {
  const auto refused = [](const std::string& path, std::string_view part) {
    const auto file = GgufFile::open(path);
    REQUIRE_FALSE(file.ok());
    CHECK_MESSAGE(file.status().message().find(part) != std::string::npos, file.status().message());
  };
  const PartsFolder parts;
  parts.write(1, 2, 0, 2, 2);
  refused(parts.path(1, 2), "part 2 of 2: cannot open");
  parts.write(2, 2, 1, 2, 2);
  refused(parts.path(2, 2), "name the first, which ends in -00001-of-00002.gguf");
  parts.write(2, 2, 0, 2, 2);
  refused(parts.path(1, 2), "says it is part 1 of 2, not 2 of 2");
  parts.write(2, 2, 1, 3, 2);
  refused(parts.path(1, 2), "says it is part 2 of 3");
  parts.write(2, 2, 1, 2, 2, "t1");
  refused(parts.path(1, 2), "tensor \"t1\" is there twice");
  parts.write(2, 2, 1, 2, 2);
  parts.write(1, 2, 0, 2, 9);
  refused(parts.path(1, 2), "have 2 tensors together, not 9");
  parts.write(1, 2, 0, 1U << 20U, 2);
  refused(parts.path(1, 2), "at most 512 parts");
  const TempFile renamed(GgufBuilder().add_u32("split.no", 0).add_u32("split.count", 2).build());
  refused(renamed.path(), "its name must end in -00001-of-00002.gguf");
}

}  // namespace brigade::model
