// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf.h"

#include <filesystem>
#include <utility>

#include "common/base/strings.h"
#include "common/model/gguf_header.h"
#include "common/model/gguf_parts.h"
#include "common/model/sha256.h"

namespace brigade::model {
namespace {

Status wrong_type(std::string_view key, std::string_view wanted) {
  return data_loss(str_cat(key_context(key), " is not ", wanted));
}

}  // namespace

GgufFile::GgufFile(std::string path) : path_(std::move(path)) {}
GgufFile::~GgufFile() = default;

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  std::shared_ptr<GgufFile> file(new GgufFile(path));
  RETURN_IF_ERROR(file->add_part(path));
  RETURN_IF_ERROR(file->add_further_parts().with_context(quoted(path, 512)));
  RETURN_IF_ERROR(file->index_tensors().with_context(quoted(path, 512)));
  return std::shared_ptr<const GgufFile>(std::move(file));
}

Status GgufFile::add_part(const std::string& path) {
  ASSIGN_OR_RETURN(auto source, FileSource::open(path));
  auto header = read_header(source);
  if (!header.ok()) return header.status().with_context(quoted(path, 512));
  const std::uint64_t size = source->size();
  file_bytes_ += size;
  const auto bytes = std::span<const std::byte>((*header)->bytes).first((*header)->size);
  std::string digest = sha256_hex(bytes, std::as_bytes(std::span(&size, 1)));
  digest_ = parts_.empty()
                ? std::move(digest)
                : sha256_hex(std::as_bytes(std::span(digest_)), std::as_bytes(std::span(digest)));
  parts_.push_back(std::move(header).value());
  return {};
}

Status GgufFile::add_further_parts() {
  ASSIGN_OR_RETURN(const std::int64_t count, count_parts(*parts_.front(), path_));
  if (count == 1) return {};
  std::int64_t num_tensors = static_cast<std::int64_t>(parts_.front()->tensors.size());
  for (std::int64_t i = 1; i < count; ++i) {
    const std::string path = part_path(path_, i, count);
    RETURN_IF_ERROR(add_part(path).with_context(str_cat("part ", i + 1, " of ", count)));
    RETURN_IF_ERROR(check_part(*parts_.back(), i, count).with_context(quoted(path, 512)));
    num_tensors += static_cast<std::int64_t>(parts_.back()->tensors.size());
  }
  constexpr std::string_view kKey = "split.tensors.count";
  if (!has(kKey)) return {};
  ASSIGN_OR_RETURN(const std::int64_t expected, integer(kKey));
  if (num_tensors == expected) return {};
  return data_loss(str_cat("the ", count, " parts have ", num_tensors, " tensors together, not ",
                           expected, " as ", key_context(kKey), " says"));
}

Status GgufFile::index_tensors() {
  for (const auto& part : parts_) {
    for (TensorInfo& tensor : part->tensors) {
      if (!tensor_index_.emplace(tensor.name, tensors_.size()).second) {
        return data_loss(str_cat("tensor ", quoted(tensor.name), " is there twice"));
      }
      tensors_.push_back(std::move(tensor));
    }
    part->tensors.clear();
  }
  return {};
}

std::string GgufFile::name() const {
  const auto count = static_cast<std::int64_t>(parts_.size());
  const std::string whole = count == 1 ? path_ : first_part_stem(path_, count) + ".gguf";
  return std::filesystem::path(whole).stem().string();
}

std::uint32_t GgufFile::version() const {
  return parts_.front()->version;
}

const std::map<std::string_view, GgufValue>& GgufFile::metadata() const {
  return parts_.front()->metadata;
}

bool GgufFile::has(std::string_view key) const {
  return metadata().contains(key);
}

const TensorInfo* GgufFile::find_tensor(std::string_view name) const {
  const auto it = tensor_index_.find(name);
  return it == tensor_index_.end() ? nullptr : &tensors_[it->second];
}

Result<const GgufValue*> GgufFile::find(std::string_view key) const {
  const auto it = metadata().find(key);
  if (it == metadata().end()) return not_found(str_cat(key_context(key), " is missing"));
  return &it->second;
}

Result<std::int64_t> GgufFile::integer(std::string_view key) const {
  return parts_.front()->integer(key);
}

Result<double> GgufFile::number(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, find(key));
  if (const auto* number = std::get_if<double>(value)) return *number;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  if (const auto* wide = std::get_if<std::uint64_t>(value)) return static_cast<double>(*wide);
  return wrong_type(key, "a number");
}

Result<bool> GgufFile::boolean(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, find(key));
  if (const auto* boolean = std::get_if<bool>(value)) return *boolean;
  return wrong_type(key, "a bool");
}

Result<std::string_view> GgufFile::string(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, find(key));
  if (const auto* text = std::get_if<std::string_view>(value)) return *text;
  return wrong_type(key, "a string");
}

Result<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, find(key));
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || array->type != GgufType::kString) {
    return wrong_type(key, "an array of strings");
  }
  return array->strings();
}

Result<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, find(key));
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || !array->holds_integers()) return wrong_type(key, "an array of integers");
  return array->integers();
}

Result<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, find(key));
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr || !array->holds_floats()) {
    return wrong_type(key, "an array of floating-point numbers");
  }
  return array->floats();
}

}  // namespace brigade::model
