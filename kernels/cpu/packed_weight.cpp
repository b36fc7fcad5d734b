// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/packed_weight.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <mutex>

#include "common/base/check.h"
#include "common/base/float16.h"
#include "common/base/strings.h"

namespace brigade::kernels {
namespace {

constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kQuantizedRows = 16;
/// What a thread reads at once, where a panel's rows are not more.
constexpr std::int64_t kReadBytes = 256 * 1024;

void put_half(std::byte* to, std::int64_t r, std::uint16_t half) {
  std::memcpy(to + 2 * r, &half, sizeof half);
}

/// Writes the scales and minima of row r.
void place_scales(const FormTraits& traits, const StoredGroup& group, std::int64_t r,
                  std::byte* super, std::byte* header) {
  if (traits.table) {
    std::memcpy(header + 4 * r, &group.wide_scale, sizeof group.wide_scale);
    return;
  }
  std::byte* halves = traits.super ? super : header;
  put_half(halves, r, group.scale);
  if (traits.min) put_half(halves + 2 * kQuantizedRows, r, group.min);
  if (!traits.super) return;
  for (int h = 0; h < traits.halves; ++h) {
    const std::int64_t at = kQuantizedRows * h + r;
    header[at] = static_cast<std::byte>(group.sub_scale[h]);
    if (traits.min) {
      header[kQuantizedRows * traits.halves + at] = static_cast<std::byte>(group.sub_min[h]);
    }
  }
}

/// Writes the codes of row r, four bytes to a line.
void place_codes(bool wide, const StoredGroup& group, std::int64_t r, std::byte* lines) {
  std::array<std::uint8_t, kGroupSize> bytes;
  if (wide) {
    std::copy_n(group.codes, kGroupSize, bytes.data());
  } else {
    for (std::size_t i = 0; i < 16; ++i)
      bytes[i] = static_cast<std::uint8_t>(group.codes[i] | (group.codes[16 + i] << 4U));
  }
  for (std::int64_t j = 0; j < (wide ? 8 : 4); ++j)
    std::memcpy(lines + j * kLineBytes + 4 * r, bytes.data() + 4 * j, 4);
}

/// Packs one stored row, given the block of its first column, as row r of a quantised panel.
void pack_quantized_row(const Segment& segment, const StoredFormat& format, const std::byte* row,
                        std::int64_t skipped_cols, std::int64_t r, std::byte* panel) {
  const FormTraits traits = form_traits(segment.form);
  const FormLayout layout = form_layout(segment.form);
  std::array<StoredGroup, 32> groups;
  const std::int64_t num_groups = segment.cols / kGroupSize;
  for (std::int64_t first = 0; first < num_groups; first += std::ssize(groups)) {
    const std::int64_t count = std::min(std::ssize(groups), num_groups - first);
    const auto some = std::span(groups).first(static_cast<std::size_t>(count));
    load_groups(format, row, skipped_cols / kGroupSize + first, some);
    for (std::int64_t i = 0; i < count; ++i) {
      const StoredGroup& group = some[static_cast<std::size_t>(i)];
      const std::int64_t g = first + i;
      std::byte* super = traits.super ? panel + segment.super_offset(g) : nullptr;
      std::byte* block = panel + (traits.super ? segment.group_offset(g) : g * layout.group_bytes);
      place_scales(traits, group, r, super, block);
      place_codes(traits.wide, group, r, block + layout.header_bytes);
    }
  }
}

void pack_plain_row(const Segment& segment, const StoredFormat& format, const std::byte* row,
                    std::int64_t r, std::byte* panel) {
  const std::int64_t size = format.block_bytes;
  for (std::int64_t k = 0; k < segment.cols; ++k) {
    std::memcpy(panel + k * kLineBytes + r * size, row + k * size, static_cast<std::size_t>(size));
  }
}

/// Packs rows of one slice as rows of a segment from `first_row` on.
class SlicePacker {
 public:
  SlicePacker(const Segment& segment, const WeightSlice& slice, std::int64_t first_row)
      : segment_(segment),
        slice_(slice),
        first_row_(first_row),
        format_(format_of(slice.tensor->type)),
        reader_(slice) {}

  /// `rows` counts from the slice's first.
  Status pack(Range rows, std::vector<std::byte>& buffer) const {
    const std::int64_t step = std::max<std::int64_t>(1, kReadBytes / reader_.row_bytes());
    for (std::int64_t begin = rows.begin; begin < rows.end; begin += step) {
      const Range some{begin, std::min(rows.end, begin + step)};
      buffer.resize(static_cast<std::size_t>(some.size() * reader_.row_bytes()));
      RETURN_IF_ERROR(reader_.read(some, buffer.data()));
      for (std::int64_t i = 0; i < some.size(); ++i) {
        place(first_row_ + begin + i, buffer.data() + i * reader_.row_bytes());
      }
    }
    return {};
  }

 private:
  void place(std::int64_t row, const std::byte* stored) const {
    std::byte* panel = segment_.data + row / segment_.panel_rows * segment_.panel_bytes;
    const std::int64_t r = row % segment_.panel_rows;
    if (is_quantized(segment_.form)) {
      pack_quantized_row(segment_, format_, stored, reader_.skipped_cols(), r, panel);
    } else {
      pack_plain_row(segment_, format_, stored, r, panel);
    }
  }

  const Segment& segment_;
  const WeightSlice& slice_;
  const std::int64_t first_row_;
  const StoredFormat& format_;
  const SliceReader reader_;
};

/// Packs rows [rows.begin, rows.end) of a segment out of the slices it is stacked of.
Status pack_rows(const Segment& segment, std::span<const WeightSlice> slices, Range rows) {
  std::vector<std::byte> buffer;
  std::int64_t first = 0;
  for (const WeightSlice& slice : slices) {
    const Range own{std::clamp(rows.begin - first, std::int64_t{0}, slice.rows.size()),
                    std::clamp(rows.end - first, std::int64_t{0}, slice.rows.size())};
    if (own.size() > 0) {
      RETURN_IF_ERROR(SlicePacker(segment, slice, first).pack(own, buffer));
    }
    first += slice.rows.size();
  }
  return {};
}

/// Each thread packs a run of panels. The arena's memory is fresh: rows past the last are zeros.
Status pack_segment(const Segment& segment, std::span<const WeightSlice> slices, ThreadPool& pool) {
  std::mutex mutex;
  Status first_error;
  pool.run([&](int thread) {
    const std::int64_t panels = segment.num_panels();
    const std::int64_t threads = pool.num_threads();
    const Range rows{panels * thread / threads * segment.panel_rows,
                     std::min(segment.rows, panels * (thread + 1) / threads * segment.panel_rows)};
    Status status = pack_rows(segment, slices, rows);
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
    if (first_error.ok()) first_error = std::move(status);
  });
  return first_error;
}

Segment make_segment(const WeightSlice& first, std::int64_t first_row, std::int64_t rows) {
  const StoredFormat& format = format_of(first.tensor->type);
  Segment segment{
      .form = format.form, .first_row = first_row, .rows = rows, .cols = first.cols.size()};
  const bool half = segment.form == WeightForm::kF16 || segment.form == WeightForm::kBF16;
  segment.panel_rows = half ? 32 : kQuantizedRows;
  if (!is_quantized(segment.form)) {
    segment.panel_bytes = segment.cols * kLineBytes;
    return segment;
  }
  const FormTraits traits = form_traits(segment.form);
  if (traits.table) segment.table = code_table(format.type);
  if (traits.super) {
    segment.first_groups = kSuperGroups - first.cols.begin / kGroupSize % kSuperGroups;
  }
  const std::int64_t last = segment.cols / kGroupSize - 1;
  segment.panel_bytes = segment.group_offset(last) + form_layout(segment.form).group_bytes;
  return segment;
}

/// Whether two slices can lie in one segment.
bool alike(const WeightSlice& a, const WeightSlice& b) {
  return a.tensor->type == b.tensor->type && a.cols == b.cols;
}

/// Scale and minimum of half h of a group, for row r of a quantised panel.
struct Scale {
  double scale = 0;
  double min = 0;
};

Scale load_scale(const FormTraits& traits, const std::byte* super, const std::byte* header, int h,
                 std::int64_t r) {
  if (traits.table) return {.scale = load_as<float>(header + 4 * r)};
  const std::byte* halves = traits.super ? super : header;
  const auto half = [&](std::int64_t at) {
    return static_cast<double>(f32_from_f16(load_as<std::uint16_t>(halves + 2 * at)));
  };
  Scale scale{.scale = half(r), .min = traits.min ? half(kQuantizedRows + r) : 0.0};
  if (traits.super) {
    const std::int64_t at = kQuantizedRows * h + r;
    scale.scale *= load_as<std::int8_t>(header + at);
    if (traits.min) {
      scale.min *= load_as<std::int8_t>(header + kQuantizedRows * traits.halves + at);
    }
  }
  return scale;
}

/// Row r of a quantised panel. All products and sums are exact in double, so the row is rounded
/// once.
void unpack_quantized(const Segment& segment, const std::byte* panel, std::int64_t r, float* out) {
  const FormTraits traits = form_traits(segment.form);
  const FormLayout layout = form_layout(segment.form);
  for (std::int64_t g = 0; g < segment.cols / kGroupSize; ++g) {
    const std::byte* block = panel + segment.group_offset(g);
    const std::byte* lines = block + layout.header_bytes + 4 * r;
    for (std::int64_t i = 0; i < kGroupSize; ++i) {
      const Scale scale = load_scale(traits, panel + segment.super_offset(g), block,
                                     i < 16 ? 0 : traits.halves - 1, r);
      const std::int64_t byte = traits.wide ? i : i % 16;
      auto code = std::to_integer<int>(lines[byte / 4 * kLineBytes + byte % 4]);
      if (!traits.wide) code = i < 16 ? code & 15 : code >> 4;
      const int value = traits.table ? segment.table[code] : code - traits.zero_point;
      out[g * kGroupSize + i] = static_cast<float>(scale.scale * value + scale.min);
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

std::int64_t whole_lines(std::int64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace

std::int64_t Segment::super_offset(std::int64_t g) const {
  const FormLayout layout = form_layout(form);
  if (layout.super_bytes == 0) return 0;
  const std::int64_t shifted = g + kSuperGroups - first_groups;
  const std::int64_t before = shifted / kSuperGroups;
  const std::int64_t first_group =
      std::max<std::int64_t>(0, before * kSuperGroups - (kSuperGroups - first_groups));
  return before * layout.super_bytes + first_group * layout.group_bytes;
}

std::int64_t Segment::group_offset(std::int64_t g) const {
  const FormLayout layout = form_layout(form);
  if (layout.super_bytes == 0) return g * layout.group_bytes;
  const std::int64_t supers = (g + kSuperGroups - first_groups) / kSuperGroups + 1;
  return supers * layout.super_bytes + g * layout.group_bytes;
}

Result<std::unique_ptr<Weight>> PackedWeight::pack(std::span<const WeightSlice> slices,
                                                   Rounding rounding, Arena& arena,
                                                   ThreadPool& pool) {
  std::unique_ptr<PackedWeight> weight(new PackedWeight);
  weight->rounding_ = rounding;
  weight->cols_ = slices[0].cols.size();
  std::vector<std::span<const WeightSlice>> sources;
  for (std::size_t begin = 0, end = 0; begin < slices.size(); begin = end) {
    std::int64_t rows = 0;
    for (end = begin; end < slices.size() && alike(slices[end], slices[begin]); ++end) {
      rows += slices[end].rows.size();
    }
    sources.push_back(slices.subspan(begin, end - begin));
    weight->segments_.push_back(make_segment(slices[begin], weight->rows_, rows));
    weight->rows_ += rows;
  }
  const Arena::Piece piece = arena.allocate(weight->bytes());
  if (piece.owner == nullptr) {
    return resource_exhausted(
        str_cat("no memory for a packed weight of ", weight->bytes(), " bytes"));
  }
  weight->memory_ = piece.owner;
  std::byte* at = piece.data;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    Segment& segment = weight->segments_[s];
    segment.data = at;
    at += whole_lines(segment.bytes());
    RETURN_IF_ERROR(pack_segment(segment, sources[s], pool));
  }
  return std::unique_ptr<Weight>(std::move(weight));
}

std::size_t PackedWeight::bytes() const {
  std::int64_t bytes = 0;
  for (const Segment& segment : segments_)
    bytes += whole_lines(segment.bytes());
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
