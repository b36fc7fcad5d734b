// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_header.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/strings.h"
#include "common/model/gguf_cursor.h"

namespace brigade::model {
namespace {

constexpr std::uint64_t kMaxKeys = 65'536;
constexpr std::uint64_t kMaxTensors = 100'000;
constexpr std::uint64_t kMaxNameBytes = 256;
constexpr std::uint64_t kMaxKeyBytes = 65'535;
constexpr std::uint64_t kMaxAlignment = 1U << 16U;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint32_t kMaxDimensions = 4;
constexpr std::uint64_t kFirstWindow = 1U << 20U;
constexpr std::uint64_t kMaxHeaderBytes = 512U << 20U;

/// The first steps of a file, up to the counts.
struct Preamble {
  std::uint32_t version = 0;
  std::uint64_t num_tensors = 0;
  std::uint64_t num_keys = 0;
};

/// A tensor as the table has it, before its bytes are known to exist.
struct TensorEntry {
  TensorInfo info;
  std::uint64_t offset = 0;  ///< from the start of the data section
};

Status check_version(std::uint32_t version) {
  if (version == 2 || version == 3) return {};
  if (const std::uint32_t swapped = __builtin_bswap32(version); swapped <= 3) {
    return invalid_argument(
        str_cat("a big-endian GGUF file (version ", swapped,
                "); only little-endian ones can be read: convert it with gguf_convert_endian.py"));
  }
  if (version == 1) {
    return invalid_argument(
        "GGUF version 1, which is obsolete; 2 and 3 can be read: fetch a newer file of this model");
  }
  return invalid_argument(str_cat("GGUF version ", version, "; 2 and 3 can be read"));
}

/// `room`: how many the rest of the file can hold.
Status check_count(std::string_view what, std::uint64_t count, std::uint64_t max,
                   std::uint64_t room) {
  if (count > max) return data_loss(str_cat(what, " is ", count, "; at most ", max));
  if (count <= room) return {};
  return data_loss(str_cat(what, " is ", count, ", but the rest of the file has room for ", room,
                           " at most: is it cut short?"));
}

Result<Preamble> read_preamble(Cursor& cursor, std::span<const std::byte> bytes) {
  constexpr std::uint32_t kMagic = 0x46554747;   // "GGUF"
  constexpr std::uint64_t kSmallestKey = 13;     // length, type, one byte
  constexpr std::uint64_t kSmallestTensor = 32;  // lengths and numbers alone
  const auto magic = cursor.read<std::uint32_t>("magic");
  if (!magic.ok() || *magic != kMagic) {
    const auto first = bytes.first(std::min<std::size_t>(bytes.size(), 64));
    return data_loss(
        describe_foreign_file({reinterpret_cast<const char*>(first.data()), first.size()}));
  }
  Preamble preamble;
  ASSIGN_OR_RETURN(preamble.version, cursor.read<std::uint32_t>("version"));
  RETURN_IF_ERROR(check_version(preamble.version));
  ASSIGN_OR_RETURN(preamble.num_tensors, cursor.read<std::uint64_t>("tensor count"));
  ASSIGN_OR_RETURN(preamble.num_keys, cursor.read<std::uint64_t>("key count"));
  RETURN_IF_ERROR(check_count("tensor count", preamble.num_tensors, kMaxTensors,
                              cursor.remaining() / kSmallestTensor));
  RETURN_IF_ERROR(
      check_count("key count", preamble.num_keys, kMaxKeys, cursor.remaining() / kSmallestKey));
  return preamble;
}

Status read_metadata(Cursor& cursor, std::uint64_t num_keys, GgufHeader& header) {
  for (std::uint64_t i = 0; i < num_keys; ++i) {
    ASSIGN_OR_RETURN(const auto key, cursor.read_string(str_cat("name of key ", i), kMaxKeyBytes));
    if (key.empty()) return data_loss(str_cat("name of key ", i, " is empty"));
    ASSIGN_OR_RETURN(GgufValue value, read_value(cursor, key_context(key)));
    if (!header.metadata.emplace(key, value).second) {
      return data_loss(str_cat(key_context(key), " is there twice"));
    }
  }
  return {};
}

Result<std::uint64_t> read_alignment(const GgufHeader& header) {
  constexpr std::string_view kKey = "general.alignment";
  const auto it = header.metadata.find(kKey);
  if (it == header.metadata.end()) return kDefaultAlignment;
  ASSIGN_OR_RETURN(const std::int64_t value, as_integer(it->second, kKey));
  const auto alignment = static_cast<std::uint64_t>(value);
  if (alignment == 0 || alignment > kMaxAlignment || alignment % 8 != 0) {
    return data_loss(str_cat(key_context(kKey), " is ", value, "; a multiple of 8 up to ",
                             kMaxAlignment, " is needed"));
  }
  return alignment;
}

Status read_shape(Cursor& cursor, const std::string& what, TensorInfo& info) {
  ASSIGN_OR_RETURN(const auto num_dims, cursor.read<std::uint32_t>(what));
  if (num_dims == 0 || num_dims > kMaxDimensions) {
    return data_loss(str_cat(what, " has ", num_dims, " dimensions; 1 to ", kMaxDimensions));
  }
  for (std::uint32_t i = 0; i < num_dims; ++i) {
    ASSIGN_OR_RETURN(const auto size, cursor.read<std::uint64_t>(what));
    if (size == 0 || size > std::numeric_limits<std::int32_t>::max()) {
      return data_loss(str_cat(what, " has the size ", size, " in dimension ", i));
    }
    const auto length = static_cast<std::int64_t>(size);
    if (i == 0) info.cols = length;
    if (i == 1) info.rows = length;
    if (i == 2) info.num_matrices = length;
    if (i == 3 && length != 1) {
      return invalid_argument(str_cat(what, " has ", num_dims, " dimensions; 3 can be used"));
    }
  }
  info.rows *= info.num_matrices;  // both below 2^31
  return {};
}

Result<TensorEntry> read_tensor_entry(Cursor& cursor, std::uint64_t index) {
  ASSIGN_OR_RETURN(const auto name,
                   cursor.read_string(str_cat("name of tensor ", index), kMaxNameBytes));
  if (name.empty() || name.find('\0') != std::string_view::npos) {
    return data_loss(str_cat("name of tensor ", index, " is ", quoted(name)));
  }
  TensorEntry entry;
  TensorInfo& info = entry.info;
  info.name = name;
  const std::string what = str_cat("tensor ", quoted(name));
  RETURN_IF_ERROR(read_shape(cursor, what, info));
  ASSIGN_OR_RETURN(const auto type_id, cursor.read<std::uint32_t>(what));
  const auto type = readable_type(type_id);
  if (!type) {
    return invalid_argument(str_cat(what, " is stored as ", describe_type(type_id),
                                    ", which cannot be read; these can: ", readable_types()));
  }
  info.type = *type;
  ASSIGN_OR_RETURN(entry.offset, cursor.read<std::uint64_t>(what));
  const std::int64_t block = block_elements(*type);
  if (info.cols % block != 0) {
    return data_loss(str_cat(what, " has ", info.cols, " columns, not a multiple of ", block,
                             " as ", to_string(*type), " needs"));
  }
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(info.rows),
                             static_cast<std::uint64_t>(info.row_bytes()), &info.bytes)) {
    return data_loss(str_cat(what, " of ", info.rows, " x ", info.cols, " does not fit 64 bits"));
  }
  return entry;
}

/// Gives every entry its place in the file, once all lie inside the data section, aligned, and no
/// two overlap.
Status place_tensors(std::uint64_t data_begin, std::uint64_t data_size, std::uint64_t alignment,
                     std::vector<TensorEntry>& entries) {
  std::vector<TensorEntry*> by_offset;
  by_offset.reserve(entries.size());
  for (TensorEntry& entry : entries) {
    const auto what = [&] { return str_cat("tensor ", quoted(entry.info.name)); };
    if (entry.offset % alignment != 0) {
      return data_loss(
          str_cat(what(), " lies at offset ", entry.offset, ", not a multiple of ", alignment));
    }
    if (entry.offset > data_size || entry.info.bytes > data_size - entry.offset) {
      return data_loss(str_cat(what(), " needs ", entry.info.bytes, " bytes at offset ",
                               entry.offset, " of ", data_size,
                               " bytes of data: is the file cut short?"));
    }
    entry.info.offset = data_begin + entry.offset;
    by_offset.push_back(&entry);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const TensorEntry* a, const TensorEntry* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    if (by_offset[i - 1]->offset + by_offset[i - 1]->info.bytes > by_offset[i]->offset) {
      return data_loss(str_cat("tensors ", quoted(by_offset[i - 1]->info.name), " and ",
                               quoted(by_offset[i]->info.name), " overlap"));
    }
  }
  return {};
}

Status parse(Cursor& cursor, GgufHeader& header) {
  ASSIGN_OR_RETURN(const Preamble preamble, read_preamble(cursor, header.bytes));
  header.version = preamble.version;
  RETURN_IF_ERROR(read_metadata(cursor, preamble.num_keys, header));
  ASSIGN_OR_RETURN(const std::uint64_t alignment, read_alignment(header));
  std::vector<TensorEntry> entries;
  for (std::uint64_t i = 0; i < preamble.num_tensors; ++i) {
    ASSIGN_OR_RETURN(TensorEntry entry, read_tensor_entry(cursor, i));
    entries.push_back(std::move(entry));
  }
  header.size = cursor.position();
  const std::uint64_t file_size = header.size + cursor.remaining();
  const std::uint64_t data_begin =
      std::min(file_size, (header.size + alignment - 1) / alignment * alignment);
  RETURN_IF_ERROR(place_tensors(data_begin, file_size - data_begin, alignment, entries));
  for (TensorEntry& entry : entries)
    header.tensors.push_back(std::move(entry.info));
  return {};
}

}  // namespace

std::string key_context(std::string_view key) {
  return str_cat("key ", quoted(key));
}

Result<std::int64_t> as_integer(const GgufValue& value, std::string_view key) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* wide = std::get_if<std::uint64_t>(&value)) {
    if (std::in_range<std::int64_t>(*wide)) return static_cast<std::int64_t>(*wide);
    return data_loss(str_cat(key_context(key), " is ", *wide, ", which does not fit 63 bits"));
  }
  return data_loss(str_cat(key_context(key), " is not an integer"));
}

Result<std::int64_t> GgufHeader::integer(std::string_view key) const {
  const auto it = metadata.find(key);
  if (it == metadata.end()) return not_found(str_cat(key_context(key), " is missing"));
  return as_integer(it->second, key);
}

Result<std::unique_ptr<GgufHeader>> read_header(const std::shared_ptr<const ByteSource>& source) {
  // The header's size is known once it is read: growing windows read it twice at most, on average.
  for (std::uint64_t window = kFirstWindow;; window *= 2) {
    auto header = std::make_unique<GgufHeader>();
    header->bytes.resize(std::min(source->size(), window));
    RETURN_IF_ERROR(source->read(0, header->bytes));
    Cursor cursor(header->bytes, source->size());
    const Status status = parse(cursor, *header);
    if (cursor.starved() && window < kMaxHeaderBytes) continue;
    if (cursor.starved()) {
      return data_loss(str_cat("its header is longer than ", kMaxHeaderBytes, " bytes"));
    }
    RETURN_IF_ERROR(status);
    for (TensorInfo& tensor : header->tensors)
      tensor.source = source;
    return header;
  }
}

}  // namespace brigade::model
