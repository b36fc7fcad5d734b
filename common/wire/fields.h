// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_generated.h"
#include "common/base/status.h"
#include "common/base/strings.h"
#include "worker_generated.h"

/// Shared by the codec's files alone: it shows generated code.
namespace brigade::wire {

using Builder = flatbuffers::FlatBufferBuilder;
template <typename T>
using Offset = flatbuffers::Offset<T>;

/// Copies a vector into the buffer; an empty one is left out.
template <typename T>
Offset<flatbuffers::Vector<T>> pack_vector(Builder& builder, const std::vector<T>& values) {
  if (values.empty()) return 0;
  return builder.CreateVector(values);
}

Offset<flatbuffers::String> pack_text(Builder& builder, const std::string& text);
Offset<fb::Strings> pack_strings(Builder& builder, const std::vector<std::string>& strings);
Offset<fb::Error> pack_error(Builder& builder, const Status& status);

/// Takes fields out of a verified buffer and remembers the first that does not mean what it must;
/// after that the values taken are not to be used.
class Fields final {
 public:
  /// `message` is the name in front of fields' names in errors.
  explicit Fields(std::string_view message) : message_(message) {}

  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] bool ok() const { return status_.ok(); }
  void fault(std::string_view field, std::string_view what);

  std::string text(const flatbuffers::String* value) const;
  std::vector<std::string> strings(const fb::Strings* value, std::string_view field);
  Status error(const fb::Error* value, std::string_view field);

  template <typename T>
  std::vector<T> vector(const flatbuffers::Vector<T>* value) const {
    if (value == nullptr) return {};
    return {value->data(), value->data() + value->size()};
  }

  template <typename T>
  T finite(T value, std::string_view field) {
    if (!std::isfinite(value)) fault(field, "is not finite");
    return value;
  }
  template <typename T>
  T in_range(T value, T low, T high, std::string_view field) {
    if (!(value >= low && value <= high)) {
      fault(field, str_cat("is ", +value, ", not in [", +low, ", ", +high, "]"));
    }
    return value;
  }
  template <typename Enum>
  Enum enumerator(std::uint8_t value, Enum last, std::string_view field) {
    in_range<std::uint8_t>(value, 0, static_cast<std::uint8_t>(last), field);
    return static_cast<Enum>(value);
  }

  void length(std::size_t size, std::size_t expected, std::string_view field);
  /// `cu` has num_owners + 1 entries, starts at 0, never falls, and ends at `target_size`. It may
  /// be absent when nobody owns anything.
  void intervals(const std::vector<std::uint32_t>& cu, std::size_t num_owners,
                 std::size_t target_size, std::string_view field);

 private:
  std::string_view message_;
  Status status_;
};

/// A copy of `bytes` when they are not aligned as FlatBuffers must be (a ZeroMQ frame's body need
/// not be).
class AlignedBytes final {
 public:
  explicit AlignedBytes(std::span<const std::byte> bytes);
  [[nodiscard]] const std::uint8_t* data() const { return data_; }

 private:
  std::vector<std::uint64_t> copy_;
  const std::uint8_t* data_;
};

/// Size, then structure, with the bounds of the codec.
template <typename Root>
Result<const Root*> verified_root(std::span<const std::byte> bytes, const AlignedBytes& aligned,
                                  std::size_t max_bytes, std::string_view name) {
  if (bytes.size() > max_bytes) {
    return data_loss(
        str_cat(name, " of ", bytes.size(), " bytes, at most ", max_bytes, " allowed"));
  }
  flatbuffers::Verifier::Options options;
  options.max_depth = 32;
  options.max_tables = 1024;
  flatbuffers::Verifier verifier(aligned.data(), bytes.size(), options);
  if (!verifier.VerifyBuffer<Root>(nullptr)) {
    return data_loss(str_cat(name, " of ", bytes.size(), " bytes is not a valid FlatBuffer"));
  }
  return flatbuffers::GetRoot<Root>(aligned.data());
}

}  // namespace brigade::wire
