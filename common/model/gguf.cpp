// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "common/base/check.h"
#include "common/base/strings.h"
#include "common/model/mapped_file.h"
#include "common/model/sha256.h"
#include "common/model/tensor_type.h"

namespace brigade::model {

static_assert(std::endian::native == std::endian::little, "GGUF is read in place");

struct GgufFile::Impl {
  std::string path;
  std::unique_ptr<MappedFile> file;
  std::uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::size_t, std::less<>> tensor_index;  ///< name -> place in tensors
  std::string digest;
};

namespace {

constexpr std::uint64_t kMaxTensors = 100'000;
constexpr std::uint64_t kMaxNameBytes = 256;
constexpr std::uint64_t kMaxKeyBytes = 65'535;
constexpr std::uint64_t kMaxArrayItems = 1U << 24U;  ///< numbers grow to 8 bytes each in memory
constexpr std::uint64_t kMaxAlignment = 1U << 16U;
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint32_t kMaxDimensions = 4;

/// Value types as stored.
enum class ValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

std::uint64_t fixed_size(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kString:
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;  // a string: its length
    case ValueType::kArray:
      return 12;
  }
  return 0;
}

/// Reads forward through the file; nothing is ever read past its end.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t remaining() const { return bytes_.size() - position_; }

  template <typename T>
  Result<T> read(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    if (remaining() < sizeof(T)) return short_of(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  Result<std::string_view> read_string(std::string_view what, std::uint64_t max_bytes) {
    ASSIGN_OR_RETURN(const auto length, read<std::uint64_t>(what));
    if (length > max_bytes) {
      return data_loss(str_cat(what, " is ", length, " bytes long; at most ", max_bytes));
    }
    if (length > remaining()) return short_of(what, length);
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + position_), length);
    position_ += length;
    return text;
  }

 private:
  [[nodiscard]] Status short_of(std::string_view what, std::uint64_t need) const {
    return data_loss(str_cat(what, " needs ", need, " bytes at offset ", position_, ", but only ",
                             remaining(), " are left in the file"));
  }

  std::span<const std::byte> bytes_;
  std::uint64_t position_ = 0;
};

Result<ValueType> read_value_type(Cursor& cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const auto id, cursor.read<std::uint32_t>(what));
  if (id > static_cast<std::uint32_t>(ValueType::kF64)) {
    return data_loss(str_cat(what, " has the unknown value type ", id));
  }
  return static_cast<ValueType>(id);
}

/// One number of a stored width as the widest of its kind.
template <typename Stored, typename Wide>
Result<Wide> read_as(Cursor& cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const auto value, cursor.read<Stored>(what));
  return static_cast<Wide>(value);
}

Result<std::int64_t> read_integer(Cursor& cursor, ValueType type, std::string_view what) {
  switch (type) {
    case ValueType::kU8:
      return read_as<std::uint8_t, std::int64_t>(cursor, what);
    case ValueType::kI8:
      return read_as<std::int8_t, std::int64_t>(cursor, what);
    case ValueType::kU16:
      return read_as<std::uint16_t, std::int64_t>(cursor, what);
    case ValueType::kI16:
      return read_as<std::int16_t, std::int64_t>(cursor, what);
    case ValueType::kU32:
      return read_as<std::uint32_t, std::int64_t>(cursor, what);
    case ValueType::kI32:
      return read_as<std::int32_t, std::int64_t>(cursor, what);
    case ValueType::kI64:
      return cursor.read<std::int64_t>(what);
    case ValueType::kBool: {
      ASSIGN_OR_RETURN(const auto value, cursor.read<std::uint8_t>(what));
      if (value > 1) return data_loss(str_cat(what, " is a bool with the value ", int{value}));
      return std::int64_t{value};
    }
    default: {
      ASSIGN_OR_RETURN(const auto value, cursor.read<std::uint64_t>(what));
      if (!std::in_range<std::int64_t>(value)) {
        return data_loss(str_cat(what, " holds ", value, ", which does not fit 63 bits"));
      }
      return static_cast<std::int64_t>(value);
    }
  }
}

Result<double> read_float(Cursor& cursor, ValueType type, std::string_view what) {
  if (type == ValueType::kF32) return read_as<float, double>(cursor, what);
  return cursor.read<double>(what);
}

bool is_float(ValueType type) {
  return type == ValueType::kF32 || type == ValueType::kF64;
}

template <typename T, typename Read>
Result<GgufValue> read_items(std::uint64_t count, Read&& read) {
  std::vector<T> items;
  items.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(T item, read());
    items.push_back(item);
  }
  return GgufValue(std::make_shared<const GgufArray>(GgufArray{std::move(items)}));
}

Result<GgufValue> read_array(Cursor& cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const auto type, read_value_type(cursor, what));
  ASSIGN_OR_RETURN(const auto count, cursor.read<std::uint64_t>(what));
  if (type == ValueType::kArray) return data_loss(str_cat(what, " is an array of arrays"));
  if (count > kMaxArrayItems || count > cursor.remaining() / fixed_size(type)) {
    return data_loss(str_cat(what, " claims ", count, " items; ", cursor.remaining(),
                             " bytes are left in the file, and at most ", kMaxArrayItems,
                             " items are read"));
  }
  if (type == ValueType::kString) {
    return read_items<std::string_view>(
        count, [&] { return cursor.read_string(what, std::numeric_limits<std::uint32_t>::max()); });
  }
  if (is_float(type)) {
    return read_items<double>(count, [&] { return read_float(cursor, type, what); });
  }
  return read_items<std::int64_t>(count, [&] { return read_integer(cursor, type, what); });
}

Result<GgufValue> read_value(Cursor& cursor, std::string_view what) {
  ASSIGN_OR_RETURN(const auto type, read_value_type(cursor, what));
  if (type == ValueType::kArray) return read_array(cursor, what);
  if (type == ValueType::kString) {
    ASSIGN_OR_RETURN(const auto text,
                     cursor.read_string(what, std::numeric_limits<std::uint32_t>::max()));
    return GgufValue(text);
  }
  if (is_float(type)) {
    ASSIGN_OR_RETURN(const auto value, read_float(cursor, type, what));
    return GgufValue(value);
  }
  if (type == ValueType::kU64) {
    ASSIGN_OR_RETURN(const auto value, cursor.read<std::uint64_t>(what));
    return GgufValue(value);
  }
  ASSIGN_OR_RETURN(const auto value, read_integer(cursor, type, what));
  return type == ValueType::kBool ? GgufValue(value != 0) : GgufValue(value);
}

/// A tensor as the table has it, before its bytes are known to exist.
struct TensorEntry {
  TensorInfo info;
  std::uint64_t offset = 0;  ///< from the start of the data section
  std::uint64_t bytes = 0;
};

Status read_shape(Cursor& cursor, const std::string& what, TensorEntry& entry) {
  ASSIGN_OR_RETURN(const auto num_dims, cursor.read<std::uint32_t>(what));
  if (num_dims == 0 || num_dims > kMaxDimensions) {
    return data_loss(str_cat(what, " has ", num_dims, " dimensions; 1 to ", kMaxDimensions));
  }
  for (std::uint32_t i = 0; i < num_dims; ++i) {
    ASSIGN_OR_RETURN(const auto size, cursor.read<std::uint64_t>(what));
    if (size == 0 || size > std::numeric_limits<std::int32_t>::max()) {
      return data_loss(str_cat(what, " has the size ", size, " in dimension ", i));
    }
    if (i >= 2 && size != 1) {
      return invalid_argument(str_cat(what, " has ", num_dims, " dimensions; 2 can be used"));
    }
    if (i == 0) entry.info.cols = static_cast<std::int64_t>(size);
    if (i == 1) entry.info.rows = static_cast<std::int64_t>(size);
  }
  return {};
}

Result<TensorEntry> read_tensor_entry(Cursor& cursor, std::uint64_t index) {
  ASSIGN_OR_RETURN(const auto name,
                   cursor.read_string(str_cat("name of tensor ", index), kMaxNameBytes));
  if (name.empty() || name.find('\0') != std::string_view::npos) {
    return data_loss(str_cat("name of tensor ", index, " is ", quoted(name)));
  }
  TensorEntry entry;
  entry.info.name = name;
  const std::string what = str_cat("tensor ", quoted(name));
  RETURN_IF_ERROR(read_shape(cursor, what, entry));
  ASSIGN_OR_RETURN(const auto type_id, cursor.read<std::uint32_t>(what));
  const auto type = readable_type(type_id);
  if (!type) {
    return invalid_argument(str_cat(what, " is stored as ", describe_type(type_id),
                                    ", which cannot be read; these can: ", readable_types()));
  }
  entry.info.type = *type;
  ASSIGN_OR_RETURN(entry.offset, cursor.read<std::uint64_t>(what));
  const std::int64_t block = block_elements(*type);
  if (entry.info.cols % block != 0) {
    return data_loss(str_cat(what, " has ", entry.info.cols, " columns, not a multiple of ", block,
                             " as ", to_string(*type), " needs"));
  }
  // Both factors are below 2^34: rows < 2^31, and a row of 2^31 F32 has 2^33 bytes; their product
  // may pass 2^63.
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(entry.info.rows),
                             static_cast<std::uint64_t>(entry.info.row_bytes()), &entry.bytes)) {
    return data_loss(
        str_cat(what, " of ", entry.info.rows, " x ", entry.info.cols, " does not fit 64 bits"));
  }
  return entry;
}

/// Gives every entry its bytes, once all lie inside the data section, aligned, and no two overlap.
Status place_tensors(std::span<const std::byte> data, std::uint64_t alignment,
                     std::vector<TensorEntry>& entries) {
  std::vector<TensorEntry*> by_offset;
  for (TensorEntry& entry : entries) {
    const auto what = [&] { return str_cat("tensor ", quoted(entry.info.name)); };
    if (entry.offset % alignment != 0) {
      return data_loss(
          str_cat(what(), " lies at offset ", entry.offset, ", not a multiple of ", alignment));
    }
    if (entry.offset > data.size() || entry.bytes > data.size() - entry.offset) {
      return data_loss(str_cat(what(), " needs ", entry.bytes, " bytes at offset ", entry.offset,
                               " of ", data.size(), " bytes of data: is the file cut short?"));
    }
    entry.info.data = data.subspan(entry.offset, entry.bytes);
    by_offset.push_back(&entry);
  }
  std::sort(by_offset.begin(), by_offset.end(),
            [](const TensorEntry* a, const TensorEntry* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    if (by_offset[i - 1]->offset + by_offset[i - 1]->bytes > by_offset[i]->offset) {
      return data_loss(str_cat("tensors ", quoted(by_offset[i - 1]->info.name), " and ",
                               quoted(by_offset[i]->info.name), " overlap"));
    }
  }
  return {};
}

std::string key_context(std::string_view key) {
  return str_cat("key ", quoted(key));
}

Status wrong_type(std::string_view key, std::string_view wanted) {
  return data_loss(str_cat(key_context(key), " is not ", wanted));
}

/// The first steps of a file, up to the counts.
struct Preamble {
  std::uint32_t version = 0;
  std::uint64_t num_tensors = 0;
  std::uint64_t num_keys = 0;
};

Result<Preamble> read_preamble(Cursor& cursor) {
  constexpr std::uint32_t kMagic = 0x46554747;   // "GGUF"
  constexpr std::uint64_t kSmallestKey = 13;     // length, type, one byte
  constexpr std::uint64_t kSmallestTensor = 32;  // lengths and numbers alone
  ASSIGN_OR_RETURN(const auto magic, cursor.read<std::uint32_t>("magic"));
  if (magic != kMagic) return data_loss("magic is not GGUF: not a GGUF file");
  Preamble preamble;
  ASSIGN_OR_RETURN(preamble.version, cursor.read<std::uint32_t>("version"));
  if (preamble.version != 2 && preamble.version != 3) {
    const bool big_endian = __builtin_bswap32(preamble.version) <= 3;
    return invalid_argument(str_cat("version is ", preamble.version,
                                    big_endian ? " (a big-endian file)" : "",
                                    "; little-endian 2 and 3 can be read"));
  }
  ASSIGN_OR_RETURN(preamble.num_tensors, cursor.read<std::uint64_t>("tensor count"));
  ASSIGN_OR_RETURN(preamble.num_keys, cursor.read<std::uint64_t>("key count"));
  if (preamble.num_tensors > kMaxTensors ||
      preamble.num_tensors > cursor.remaining() / kSmallestTensor) {
    return data_loss(str_cat("tensor count is ", preamble.num_tensors, " in a file of ",
                             cursor.remaining(), " further bytes; at most ", kMaxTensors));
  }
  if (preamble.num_keys > cursor.remaining() / kSmallestKey) {
    return data_loss(str_cat("key count is ", preamble.num_keys, " in a file of ",
                             cursor.remaining(), " further bytes"));
  }
  return preamble;
}

Result<std::uint64_t> checked_alignment(const GgufValue& value) {
  constexpr std::string_view kKey = "general.alignment";
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* wide = std::get_if<std::uint64_t>(&value);
  if (integer == nullptr && wide == nullptr) return wrong_type(kKey, "an integer");
  const auto alignment = wide != nullptr ? *wide : static_cast<std::uint64_t>(*integer);
  if (alignment == 0 || alignment > kMaxAlignment || alignment % 8 != 0) {
    return data_loss(str_cat(key_context(kKey), " is ", alignment, "; a multiple of 8 up to ",
                             kMaxAlignment, " is needed"));
  }
  return alignment;
}

}  // namespace

GgufFile::GgufFile() : impl_(std::make_unique<Impl>()) {}
GgufFile::~GgufFile() = default;

Status GgufFile::parse() {
  const std::span<const std::byte> bytes = impl_->file->bytes();
  Cursor cursor(bytes);
  ASSIGN_OR_RETURN(const Preamble preamble, read_preamble(cursor));
  impl_->version = preamble.version;
  for (std::uint64_t i = 0; i < preamble.num_keys; ++i) {
    ASSIGN_OR_RETURN(const auto key, cursor.read_string(str_cat("name of key ", i), kMaxKeyBytes));
    if (key.empty()) return data_loss(str_cat("name of key ", i, " is empty"));
    ASSIGN_OR_RETURN(GgufValue value, read_value(cursor, key_context(key)));
    if (!impl_->metadata.emplace(key, std::move(value)).second) {
      return data_loss(str_cat(key_context(key), " is there twice"));
    }
  }
  std::uint64_t alignment = kDefaultAlignment;
  if (const auto it = impl_->metadata.find("general.alignment"); it != impl_->metadata.end()) {
    ASSIGN_OR_RETURN(alignment, checked_alignment(it->second));
  }
  std::vector<TensorEntry> entries;
  for (std::uint64_t i = 0; i < preamble.num_tensors; ++i) {
    ASSIGN_OR_RETURN(TensorEntry entry, read_tensor_entry(cursor, i));
    if (!impl_->tensor_index.emplace(entry.info.name, entries.size()).second) {
      return data_loss(str_cat("tensor ", quoted(entry.info.name), " is there twice"));
    }
    entries.push_back(std::move(entry));
  }
  const std::uint64_t header = cursor.position();
  const std::uint64_t data_begin =
      std::min<std::uint64_t>(bytes.size(), (header + alignment - 1) / alignment * alignment);
  RETURN_IF_ERROR(place_tensors(bytes.subspan(data_begin), alignment, entries));
  for (TensorEntry& entry : entries)
    impl_->tensors.push_back(std::move(entry.info));
  const std::uint64_t size = bytes.size();
  impl_->digest = sha256_hex(bytes.first(header), std::as_bytes(std::span(&size, 1)));
  return {};
}

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  std::shared_ptr<GgufFile> gguf(new GgufFile);
  gguf->impl_->path = path;
  ASSIGN_OR_RETURN(gguf->impl_->file, MappedFile::open(path));
  RETURN_IF_ERROR(gguf->parse().with_context(quoted(path, 512)));
  return std::shared_ptr<const GgufFile>(std::move(gguf));
}

const std::string& GgufFile::path() const {
  return impl_->path;
}
std::uint32_t GgufFile::version() const {
  return impl_->version;
}
const std::string& GgufFile::digest() const {
  return impl_->digest;
}
const std::vector<TensorInfo>& GgufFile::tensors() const {
  return impl_->tensors;
}

bool GgufFile::has(std::string_view key) const {
  return impl_->metadata.find(key) != impl_->metadata.end();
}

const TensorInfo* GgufFile::find_tensor(std::string_view name) const {
  const auto it = impl_->tensor_index.find(name);
  return it == impl_->tensor_index.end() ? nullptr : &impl_->tensors[it->second];
}

Result<const GgufValue*> GgufFile::find(std::string_view key) const {
  const auto it = impl_->metadata.find(key);
  if (it == impl_->metadata.end()) return not_found(str_cat(key_context(key), " is missing"));
  return &it->second;
}

Result<std::int64_t> GgufFile::integer(std::string_view key) const {
  ASSIGN_OR_RETURN(const GgufValue* value, find(key));
  if (const auto* integer = std::get_if<std::int64_t>(value)) return *integer;
  if (const auto* wide = std::get_if<std::uint64_t>(value)) {
    if (std::in_range<std::int64_t>(*wide)) return static_cast<std::int64_t>(*wide);
    return data_loss(str_cat(key_context(key), " is ", *wide, ", which does not fit 63 bits"));
  }
  return wrong_type(key, "an integer");
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

template <typename T>
Result<std::vector<T>> GgufFile::items(std::string_view key, std::string_view kind) const {
  ASSIGN_OR_RETURN(const GgufValue* value, find(key));
  if (const auto* array = std::get_if<std::shared_ptr<const GgufArray>>(value)) {
    if (const auto* found = std::get_if<std::vector<T>>(&(*array)->items)) return *found;
  }
  return wrong_type(key, kind);
}

Result<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  return items<std::string_view>(key, "an array of strings");
}
Result<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  return items<std::int64_t>(key, "an array of integers");
}
Result<std::vector<double>> GgufFile::numbers(std::string_view key) const {
  return items<double>(key, "an array of floating-point numbers");
}

}  // namespace brigade::model
