// SPDX-License-Identifier: Apache-2.0
#include "common/wire/fields.h"

#include <cstring>

namespace brigade::wire {

Offset<flatbuffers::String> pack_text(Builder& builder, const std::string& text) {
  if (text.empty()) return 0;
  return builder.CreateString(text);
}

Offset<fb::Strings> pack_strings(Builder& builder, const std::vector<std::string>& strings) {
  if (strings.empty()) return 0;
  std::vector<std::uint8_t> text;
  std::vector<std::uint32_t> ends;
  ends.reserve(strings.size());
  for (const std::string& string : strings) {
    text.insert(text.end(), string.begin(), string.end());
    ends.push_back(static_cast<std::uint32_t>(text.size()));
  }
  const auto text_offset = pack_vector(builder, text);
  const auto ends_offset = pack_vector(builder, ends);
  return fb::CreateStrings(builder, text_offset, ends_offset);
}

Offset<fb::Error> pack_error(Builder& builder, const Status& status) {
  const auto message = pack_text(builder, status.message());
  return fb::CreateError(builder, static_cast<std::uint8_t>(status.code()), message);
}

void Fields::fault(std::string_view field, std::string_view what) {
  if (status_.ok()) status_ = data_loss(str_cat(message_, ".", field, " ", what));
}

std::string Fields::text(const flatbuffers::String* value) const {
  return value == nullptr ? std::string() : value->str();
}

std::vector<std::string> Fields::strings(const fb::Strings* value, std::string_view field) {
  std::vector<std::string> out;
  if (value == nullptr || value->ends() == nullptr) return out;
  const std::size_t size = value->text() == nullptr ? 0 : value->text()->size();
  const char* text = size == 0 ? "" : reinterpret_cast<const char*>(value->text()->data());
  std::uint32_t begin = 0;
  out.reserve(value->ends()->size());
  for (const std::uint32_t end : *value->ends()) {
    if (end < begin || end > size) {
      fault(field, "has ends that do not rise within its text");
      return {};
    }
    out.emplace_back(text + begin, end - begin);
    begin = end;
  }
  if (begin != size) fault(field, "has text after its last end");
  return out;
}

Status Fields::error(const fb::Error* value, std::string_view field) {
  if (value == nullptr) {
    fault(field, "is missing");
    return {};
  }
  const auto code = enumerator(value->code(), StatusCode::kInternal, field);
  // Who is told of a failure hands it on as one: an error that says ok would end a process there.
  if (code == StatusCode::kOk) fault(field, "is not an error");
  return {code, text(value->message())};
}

void Fields::length(std::size_t size, std::size_t expected, std::string_view field) {
  if (size != expected) fault(field, str_cat("has ", size, " entries, not ", expected));
}

void Fields::intervals(const std::vector<std::uint32_t>& cu, std::size_t num_owners,
                       std::size_t target_size, std::string_view field) {
  if (cu.empty() && num_owners == 0 && target_size == 0) return;
  length(cu.size(), num_owners + 1, field);
  if (!ok()) return;
  if (cu.front() != 0) fault(field, "does not start at 0");
  for (std::size_t i = 1; i < cu.size(); ++i) {
    if (cu[i] < cu[i - 1]) {
      fault(field, str_cat("falls at ", i));
      return;
    }
  }
  if (cu.back() != target_size) {
    fault(field, str_cat("ends at ", cu.back(), ", its target has ", target_size, " entries"));
  }
}

AlignedBytes::AlignedBytes(std::span<const std::byte> bytes)
    : data_(reinterpret_cast<const std::uint8_t*>(bytes.data())) {
  if (data_ != nullptr && reinterpret_cast<std::uintptr_t>(data_) % alignof(std::uint64_t) == 0) {
    return;
  }
  copy_.resize(bytes.size() / sizeof(std::uint64_t) + 1);
  if (!bytes.empty()) std::memcpy(copy_.data(), bytes.data(), bytes.size());
  data_ = reinterpret_cast<const std::uint8_t*>(copy_.data());
}

}  // namespace brigade::wire
