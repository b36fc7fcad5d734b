// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/packed_weight.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "kernels/float16.h"
#include "kernels/weight_format.h"

namespace brigade::kernels {
namespace {

constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kMaxPanelRows = 32;
constexpr std::int64_t kQuantizedRows = 16;
constexpr std::int64_t kScalesBytes = 2 * kQuantizedRows;

/// The stored rows that make up a panel, at the slice's first column; null past the last row.
using SourceRows = std::array<const std::byte*, kMaxPanelRows>;

/// What a segment is made of: slices of one form, and the formats they are stored in.
struct Source {
  std::span<const WeightSlice> slices;

  [[nodiscard]] const StoredFormat& format() const { return *find_format(slices[0].tensor->type); }

  [[nodiscard]] SourceRows panel(const Segment& segment, std::int64_t p) const {
    SourceRows rows{};
    std::int64_t skip = p * segment.panel_rows;
    std::size_t at = 0;
    for (std::int64_t r = 0; r < segment.panel_rows; ++r, ++skip) {
      while (at < slices.size() && skip >= slices[at].rows.size()) {
        skip -= slices[at].rows.size();
        ++at;
      }
      if (at == slices.size()) break;
      rows[static_cast<std::size_t>(r)] =
          slice_row(format(), slices[at], slices[at].rows.begin + skip);
    }
    return rows;
  }
};

bool has_min(WeightForm form) {
  return form == WeightForm::kQ4Min;
}

void set_bytes(std::byte* to, const std::byte* from, std::int64_t size) {
  std::memcpy(to, from, static_cast<std::size_t>(size));
}

/// Transposes 16 stored blocks, word by word. The order of the nibbles is already GGUF's.
void pack_quantized_block(const Segment& segment, const StoredFormat& format,
                          const SourceRows& rows, std::int64_t group, std::byte* block) {
  const bool min = has_min(segment.form);
  const std::int64_t header = kScalesBytes * (min ? 2 : 1);
  const std::int64_t lines = segment.form == WeightForm::kQ8 ? 8 : 4;
  for (std::int64_t r = 0; r < kQuantizedRows; ++r) {
    const std::byte* source = rows[static_cast<std::size_t>(r)];
    if (source == nullptr) continue;
    source += group * format.block_bytes;
    set_bytes(block + 2 * r, source, 2);
    if (min) set_bytes(block + kScalesBytes + 2 * r, source + 2, 2);
    source += min ? 4 : 2;
    for (std::int64_t j = 0; j < lines; ++j) {
      auto word = load_as<std::uint32_t>(source + 4 * j);
      if (segment.form == WeightForm::kQ8) word ^= 0x80808080U;  // two's complement to plus 128
      std::memcpy(block + header + j * kLineBytes + 4 * r, &word, sizeof(word));
    }
  }
}

void pack_panel(const Segment& segment, const Source& source, std::int64_t p) {
  std::byte* panel = segment.data + p * segment.panel_bytes;
  const StoredFormat& format = source.format();
  const SourceRows rows = source.panel(segment, p);
  // The arena's memory is fresh, so rows past the last are zeros already.
  if (is_quantized(segment.form)) {
    const std::int64_t block = quantized_block_bytes(segment.form);
    for (std::int64_t g = 0; g < segment.cols / kGroupSize; ++g) {
      pack_quantized_block(segment, format, rows, g, panel + g * block);
    }
    return;
  }
  const std::int64_t size = format.block_bytes;
  for (std::int64_t r = 0; r < segment.panel_rows; ++r) {
    const std::byte* row = rows[static_cast<std::size_t>(r)];
    if (row == nullptr) continue;
    for (std::int64_t k = 0; k < segment.cols; ++k) {
      set_bytes(panel + k * kLineBytes + r * size, row + k * size, size);
    }
  }
}

Segment make_segment(WeightForm form, std::int64_t first_row, std::int64_t rows,
                     std::int64_t cols) {
  Segment segment{.form = form, .first_row = first_row, .rows = rows, .cols = cols};
  segment.panel_rows = form == WeightForm::kF16 || form == WeightForm::kBF16 ? 32 : kQuantizedRows;
  segment.panel_bytes =
      is_quantized(form) ? cols / kGroupSize * quantized_block_bytes(form) : cols * kLineBytes;
  return segment;
}

/// Row r of a quantised panel. All products and sums are exact in double, so the row is rounded
/// once.
void unpack_quantized(const Segment& segment, const std::byte* panel, std::int64_t r, float* out) {
  const bool min = has_min(segment.form);
  const std::int64_t header = kScalesBytes * (min ? 2 : 1);
  for (std::int64_t g = 0; g < segment.cols / kGroupSize; ++g) {
    const std::byte* block = panel + g * quantized_block_bytes(segment.form);
    const double scale = f32_from_f16(load_as<std::uint16_t>(block + 2 * r));
    const double offset = min ? static_cast<double>(f32_from_f16(
                                    load_as<std::uint16_t>(block + kScalesBytes + 2 * r)))
                              : -scale * zero_point(segment.form);
    const std::byte* lines = block + header + 4 * r;
    float* group = out + g * kGroupSize;
    for (std::int64_t i = 0; i < kGroupSize; ++i) {
      unsigned value = 0;
      if (segment.form == WeightForm::kQ8) {
        value = std::to_integer<unsigned>(lines[i / 4 * kLineBytes + i % 4]);
      } else {
        const std::int64_t j = i % 16;
        value = std::to_integer<unsigned>(lines[j / 4 * kLineBytes + j % 4]);
        value = i < 16 ? value & 15U : value >> 4U;
      }
      group[i] = static_cast<float>(scale * value + offset);
    }
  }
}

void unpack_plain(const Segment& segment, const std::byte* panel, std::int64_t r, float* out) {
  for (std::int64_t k = 0; k < segment.cols; ++k) {
    const std::byte* line = panel + k * kLineBytes;
    switch (segment.form) {
      case WeightForm::kF16:
        out[k] = f32_from_f16(load_as<std::uint16_t>(line + 2 * r));
        break;
      case WeightForm::kBF16:
        out[k] = f32_from_bf16(load_as<std::uint16_t>(line + 2 * r));
        break;
      default:
        out[k] = load_as<float>(line + 4 * r);
    }
  }
}

}  // namespace

std::int64_t quantized_block_bytes(WeightForm form) {
  const std::int64_t lines = form == WeightForm::kQ8 ? 8 : 4;
  return kScalesBytes * (has_min(form) ? 2 : 1) + lines * kLineBytes;
}

Result<std::unique_ptr<Weight>> PackedWeight::pack(std::span<const WeightSlice> slices,
                                                   Rounding rounding, Arena& arena,
                                                   ThreadPool& pool) {
  std::unique_ptr<PackedWeight> weight(new PackedWeight);
  weight->rounding_ = rounding;
  weight->cols_ = slices[0].cols.size();
  std::vector<Source> sources;
  for (std::size_t begin = 0, end = 0; begin < slices.size(); begin = end) {
    const model::TensorType type = slices[begin].tensor->type;
    std::int64_t rows = 0;
    for (end = begin; end < slices.size() && slices[end].tensor->type == type; ++end) {
      rows += slices[end].rows.size();
    }
    sources.push_back({slices.subspan(begin, end - begin)});
    weight->segments_.push_back(
        make_segment(sources.back().format().form, weight->rows_, rows, weight->cols_));
    weight->rows_ += rows;
  }
  const Arena::Piece piece = arena.allocate(weight->bytes());
  if (piece.owner == nullptr) {
    return resource_exhausted("no memory for a packed weight of " +
                              std::to_string(weight->bytes()) + " bytes");
  }
  weight->memory_ = piece.owner;
  std::byte* at = piece.data;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    Segment& segment = weight->segments_[s];
    segment.data = at;
    at += (segment.bytes() + kLineBytes - 1) / kLineBytes * kLineBytes;
    pool.run([&](int thread) {
      const std::int64_t panels = segment.num_panels();
      const std::int64_t end = panels * (thread + 1) / pool.num_threads();
      for (std::int64_t p = panels * thread / pool.num_threads(); p < end; ++p) {
        pack_panel(segment, sources[s], p);
      }
    });
  }
  return std::unique_ptr<Weight>(std::move(weight));
}

std::size_t PackedWeight::bytes() const {
  std::int64_t bytes = 0;
  for (const Segment& segment : segments_) {
    bytes += (segment.bytes() + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  return static_cast<std::size_t>(bytes);
}

void PackedWeight::unpack_row(std::int64_t row, float* out) const {
  const auto holds = [row](const Segment& s) { return row < s.first_row + s.rows; };
  const auto segment = std::find_if(segments_.begin(), segments_.end(), holds);
  INVARIANT(row >= 0 && segment != segments_.end()) << "row " << row << " of " << rows_;
  const std::int64_t r = row - segment->first_row;
  const std::byte* panel = segment->data + r / segment->panel_rows * segment->panel_bytes;
  if (is_quantized(segment->form)) {
    unpack_quantized(*segment, panel, r % segment->panel_rows, out);
  } else {
    unpack_plain(*segment, panel, r % segment->panel_rows, out);
  }
}

}  // namespace brigade::kernels
