// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf.h"

#include <doctest/doctest.h>

#include <cstring>
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
  return GgufFile::open(TempFile(bytes).path());  // the mapping outlives the name
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
    CHECK(q8->data.size() == 68);
    CHECK(file.find_tensor("f16")->rows == 1);
    CHECK(file.find_tensor("q4_1")->data.size() == 40);
    const TensorInfo* f32 = file.find_tensor("f32");
    CHECK(std::memcmp(f32->data.data(), ramp(6).data(), 24) == 0);
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
        REQUIRE(tensor.data.size() == static_cast<std::size_t>(tensor.rows * tensor.row_bytes()));
        CHECK(tensor.data.front() == tensor.data.front());
        CHECK(tensor.data.back() == tensor.data.back());
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
  check_refused("GGML" + bytes.substr(4), "magic");
  bytes[4] = 1;
  check_refused(bytes, "version is 1;");
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
  CHECK((*opened)->find_tensor("b")->data.data() - (*opened)->find_tensor("a")->data.data() == 64);
  for (std::uint32_t bad : {0U, 3U, 4U, 1U << 17U}) {
    check_refused(GgufBuilder().add_u32("general.alignment", bad).build(), "general.alignment");
  }
  check_refused(GgufBuilder().add_string("general.alignment", "32").build(), "not an integer");
}

TEST_CASE("tensors with shapes, types or places that cannot be are refused by name") {
  const auto tensor = [](const std::vector<std::uint64_t>& dims, std::uint32_t type) {
    return GgufBuilder().add_raw_tensor("t", dims, type, std::string(256, 'x')).build();
  };
  check_refused(tensor({32, 1}, 12), "tensor \"t\" is stored as Q4_K (12)");
  check_refused(tensor({32, 1}, 255), "unknown type (255)");
  check_refused(tensor({4}, 4), "unknown type (4)");
  check_refused(tensor({}, 0), "0 dimensions");
  check_refused(tensor({1, 1, 1, 1, 1}, 0), "5 dimensions");
  check_refused(tensor({2, 2, 2}, 0), "2 can be used");
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

}  // namespace brigade::model
