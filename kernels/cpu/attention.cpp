// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include "hwy/foreach_target.h"  // must come before highway.h

#include "kernels/cpu/attention.h"
#include "kernels/cpu/vec-inl.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "kernels/checks.h"
#include "kernels/cpu/linear.h"

HWY_BEFORE_NAMESPACE();
namespace brigade::kernels::HWY_NAMESPACE {
namespace {

/// Softmax runs over chunks of four pages.
constexpr std::int64_t kChunk = 64;
constexpr std::int64_t kChunkPages = kChunk / kBlockSize;
static_assert(kBlockSize == kLanes, "a page's tokens are the lanes of the scores");

// Rows that share loads, and how many pages (scores) or groups of 16 dimensions (values) are then
// summed side by side.
#if HWY_TARGET == HWY_AVX3_DL
constexpr int kMaxRows = 12;
constexpr int side_by_side(int rows) {
  return rows <= 6 ? 4 : 2;
}
#elif HWY_TARGET == HWY_SCALAR
constexpr int kMaxRows = 1;
constexpr int side_by_side(int /*rows*/) {
  return 1;
}
#else
constexpr int kMaxRows = 6;
constexpr int side_by_side(int rows) {
  return rows == 1 ? 4 : rows <= 3 ? 2 : 1;
}
#endif

HWY_INLINE V16 load_kv(const std::uint16_t* from) {
  return load_f16(from);
}
HWY_INLINE V16 load_kv(const float* from) {
  return load(from);
}
template <typename T>
HWY_INLINE V16 load_kv_n(const T* from, std::int64_t n) {
  T lanes[kLanes] = {};
  std::memcpy(lanes, from, static_cast<std::size_t>(n) * sizeof(T));
  return load_kv(lanes);
}

/// Rows of a tile in one chunk of 64 tokens.
template <typename T>
struct Chunk {
  const T* keys[kChunkPages];    ///< this kv head's, [head_dim][16]
  const T* values[kChunkPages];  ///< [16][head_dim]
  std::int64_t head_dim;
};

/// State of rows; a tile's begin at its first row.
struct Rows {
  const float* q;  ///< scaled, [head_dim][rows of the tile]
  float* maximum;  ///< [rows]
  float* sums;     ///< [rows][16]: sums of weights, lane by lane
  float* acc;      ///< [rows][padded head_dim]
  std::int64_t acc_stride;
};

/// Scores of R rows against N pages from `page` on: chains over the dimensions.
template <typename T, int R, int N>
HWY_INLINE void score_pages(const Chunk<T>& chunk, std::int64_t page, const float* q,
                            float* scores) {
  V16 sum[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      sum[r][n] = zero();
  }
  for (std::int64_t d = 0; d < chunk.head_dim; ++d) {
    V16 k[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      k[n] = load_kv(chunk.keys[page + n] + d * kBlockSize);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        sum[r][n] = fma(q[d * R + r], k[n], sum[r][n]);
        pin(sum[r][n]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n)
      store(sum[r][n], scores + r * kChunk + (page + n) * kBlockSize);
  }
}

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// Tokens of the chunk that each row of a tile sees: [begin[r], end[r]), none where both are equal.
/// Later rows begin and end no earlier.
struct Seen {
  std::int64_t begin[kMaxRows];
  std::int64_t end[kMaxRows];

  [[nodiscard]] bool nothing(int r) const { return begin[r] == end[r]; }
};

std::int64_t pages_of(std::int64_t tokens) {
  return (tokens + kBlockSize - 1) / kBlockSize;
}

/// The largest score of tokens [begin, end), which are in pages [first, last); those of the pages'
/// other tokens become -infinity.
HWY_INLINE float mask_and_find_maximum(std::int64_t begin, std::int64_t end, std::int64_t first,
                                       std::int64_t last, float* scores) {
  if (end < last * kBlockSize) {
    float* page = scores + (last - 1) * kBlockSize;
    store(keep_first(load(page), end - (last - 1) * kBlockSize, kLowest), page);
  }
  if (begin > first * kBlockSize) {
    float* page = scores + first * kBlockSize;
    store(drop_first(load(page), begin - first * kBlockSize, kLowest), page);
  }
  V16 highest = load(scores + first * kBlockSize);
  for (std::int64_t i = first + 1; i < last; ++i)
    highest = max(highest, load(scores + i * kBlockSize));
  return reduce_max(highest);
}

/// Turns the scores of R rows into weights relative to their running maxima. factors[r] is what row
/// r's earlier sums are to be multiplied with: e^0, exactly 1, when its maximum stays.
template <int R>
HWY_INLINE void weigh(const Seen& seen, float* scores, const Rows& rows, float* factors) {
  static_assert(R <= kLanes, "the rows' factors are the lanes of one vector");
  float shift[kLanes] = {};
  for (int r = 0; r < R; ++r) {
    if (seen.nothing(r)) continue;
    const float top = mask_and_find_maximum(seen.begin[r], seen.end[r], seen.begin[r] / kBlockSize,
                                            pages_of(seen.end[r]), scores + r * kChunk);
    const float old = rows.maximum[r];
    rows.maximum[r] = std::max(old, top);
    shift[r] = old - rows.maximum[r];
  }
  store(exp(load(shift)), factors);
  for (int r = 0; r < R; ++r) {
    if (seen.nothing(r)) continue;
    const std::int64_t pages = pages_of(seen.end[r]);
    const V16 maximum = set(rows.maximum[r]);
    V16 sum = mul(load(rows.sums + r * kLanes), set(factors[r]));
    for (std::int64_t i = seen.begin[r] / kBlockSize; i < pages; ++i) {
      float* at = scores + r * kChunk + i * kBlockSize;
      const V16 weight = exp(sub(load(at), maximum));
      store(weight, at);
      sum = add(sum, weight);
    }
    store(sum, rows.sums + r * kLanes);
  }
}

/// acc = acc * factor + weights of tokens [begin, end) times their values, for R rows and N groups
/// of 16 dimensions from `dim` on (`width` dimensions in a last, narrower group).
template <typename T, int R, int N, bool kNarrow>
HWY_INLINE void sum_values(const Chunk<T>& chunk, std::int64_t dim, Range tokens,
                           const float* weights, const float* factors, const Rows& rows,
                           std::int64_t width) {
  V16 sum[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      sum[r][n] = mul(load(rows.acc + r * rows.acc_stride + dim + n * kLanes), set(factors[r]));
    }
  }
  for (std::int64_t t = tokens.begin; t < tokens.end; ++t) {
    const T* from = chunk.values[t / kBlockSize] + t % kBlockSize * chunk.head_dim + dim;
    V16 v[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      v[n] = kNarrow ? load_kv_n(from, width) : load_kv(from + n * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        sum[r][n] = fma(weights[r * kChunk + t], v[n], sum[r][n]);
        pin(sum[r][n]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      store(sum[r][n], rows.acc + r * rows.acc_stride + dim + n * kLanes);
    }
  }
}

template <typename T, int R>
void sum_all_values(const Chunk<T>& chunk, Range tokens, const float* weights, const float* factors,
                    const Rows& rows) {
  constexpr int kWide = side_by_side(R);
  std::int64_t dim = 0;
  for (; dim + kWide * kLanes <= chunk.head_dim; dim += kWide * kLanes) {
    sum_values<T, R, kWide, false>(chunk, dim, tokens, weights, factors, rows, kLanes);
  }
  for (; dim + kLanes <= chunk.head_dim; dim += kLanes) {
    sum_values<T, R, 1, false>(chunk, dim, tokens, weights, factors, rows, kLanes);
  }
  if (dim < chunk.head_dim) {
    sum_values<T, R, 1, true>(chunk, dim, tokens, weights, factors, rows, chunk.head_dim - dim);
  }
}

/// The tokens of one row of a tile that its neighbours do not see.
template <typename T>
void sum_own_values(const Chunk<T>& chunk, Range tokens, int r, const float* scores, float factor,
                    Rows rows) {
  rows.acc += r * rows.acc_stride;
  sum_all_values<T, 1>(chunk, tokens, scores + r * kChunk, &factor, rows);
}

/// As sum_all_values for rows that see different tokens: those before what all see, those, and
/// those after, so that each row still takes its own in order.
template <typename T, int R>
void sum_seen_values(const Chunk<T>& chunk, const Seen& seen, const float* scores, float* factors,
                     const Rows& rows) {
  const Range shared{seen.begin[R - 1], std::max(seen.begin[R - 1], seen.end[0])};
  for (int r = 0; r < R && seen.begin[r] < shared.begin; ++r) {
    const std::int64_t end = std::min(seen.end[r], shared.begin);
    if (seen.begin[r] == end) continue;
    sum_own_values(chunk, {seen.begin[r], end}, r, scores, factors[r], rows);
    factors[r] = 1.0F;
  }
  sum_all_values<T, R>(chunk, shared, scores, factors, rows);
  for (int r = 0; r < R; ++r) {
    if (seen.end[r] > shared.end) {
      sum_own_values(chunk, {shared.end, seen.end[r]}, r, scores, 1.0F, rows);
    }
  }
}

HWY_INLINE void cap_scores(float cap, std::int64_t size, float* scores) {
  for (std::int64_t i = 0; i < size; i += kLanes)
    store(mul(tanh(div(load(scores + i), set(cap))), set(cap)), scores + i);
}

template <typename T, int R>
void attend_tile(const Chunk<T>& chunk, const Seen& seen, float soft_cap, const Rows& rows) {
  alignas(64) float scores[R * kChunk];
  float factors[kLanes];
  const std::int64_t pages = pages_of(seen.end[R - 1]);
  constexpr int kWide = side_by_side(R);
  std::int64_t page = seen.begin[0] / kBlockSize;
  for (; page + kWide <= pages; page += kWide) {
    score_pages<T, R, kWide>(chunk, page, rows.q, scores);
  }
  for (; page < pages; ++page)
    score_pages<T, R, 1>(chunk, page, rows.q, scores);
  if (soft_cap > 0) {
    for (int r = 0; r < R; ++r) {
      if (seen.nothing(r)) continue;
      const std::int64_t first = seen.begin[r] / kBlockSize * kBlockSize;
      cap_scores(soft_cap, pages_of(seen.end[r]) * kBlockSize - first, scores + r * kChunk + first);
    }
  }
  weigh<R>(seen, scores, rows, factors);
  sum_seen_values<T, R>(chunk, seen, scores, factors, rows);
}

template <typename T>
using TileFunction = void (*)(const Chunk<T>&, const Seen&, float, const Rows&);

template <typename T, int... kRows>
constexpr auto tile_functions(std::integer_sequence<int, kRows...> /*rows*/) {
  return std::array<TileFunction<T>, sizeof...(kRows)>{&attend_tile<T, kRows + 1>...};
}

/// Rows (query, head) of a task, query-major: all of one kv head, or one query's of several.
template <typename T>
class Attention {
 public:
  HWY_INLINE Attention(const AttentionPages& pages, const AttentionParams& params,
                       const AttentionTask& task, Range heads, float* scratch)
      : pages_(pages),
        params_(params),
        task_(task),
        heads_(heads),
        num_rows_(task.num_queries * heads.size()),
        acc_stride_((pages.head_dim + kLanes - 1) / kLanes * kLanes),
        acc_(scratch),
        sums_(acc_ + num_rows_ * acc_stride_),
        q_(sums_ + num_rows_ * kLanes),
        maximum_(q_ + num_rows_ * pages.head_dim) {
    std::fill(acc_, q_, 0.0F);
    std::fill(maximum_, maximum_ + num_rows_, kLowest);
    for_each_tile([&](std::int64_t /*kv_head*/, std::int64_t begin, std::int64_t size) {
      for (std::int64_t r = 0; r < size; ++r) {
        const float* from =
            task_.q + query(begin + r) * task_.q_stride + head(begin + r) * pages_.head_dim;
        float* to = q_ + begin * pages_.head_dim + r;
        for (std::int64_t d = 0; d < pages_.head_dim; ++d)
          to[d * size] = from[d] * params.scale;
      }
    });
  }

  HWY_INLINE void run() {
    constexpr auto kTiles = tile_functions<T>(std::make_integer_sequence<int, kMaxRows>());
    const std::int64_t tokens = task_.first_position + task_.num_queries;
    const std::int64_t from = first_seen(task_.first_position, params_.window);
    for (std::int64_t first = from / kChunk * kChunk; first < tokens; first += kChunk) {
      const std::int64_t num_pages = pages_of(std::min(kChunk, tokens - first));
      const std::int32_t* blocks = task_.blocks + first / kBlockSize;
      for_each_tile([&](std::int64_t kv_head, std::int64_t begin, std::int64_t size) {
        const Seen seen = seen_by(begin, size, first);
        if (seen.begin[0] == seen.end[size - 1]) return;
        Chunk<T> chunk;
        chunk.head_dim = pages_.head_dim;
        const std::int64_t head_elements = pages_.head_dim * kBlockSize;
        for (std::int64_t i = 0; i < num_pages; ++i) {
          const auto* page =
              reinterpret_cast<const T*>(pages_.data + blocks[i] * pages_.page_bytes);
          chunk.keys[i] = page + kv_head * head_elements;
          chunk.values[i] = page + (pages_.num_kv_heads + kv_head) * head_elements;
        }
        const Rows rows{.q = q_ + begin * pages_.head_dim,
                        .maximum = maximum_ + begin,
                        .sums = sums_ + begin * kLanes,
                        .acc = acc_ + begin * acc_stride_,
                        .acc_stride = acc_stride_};
        kTiles[static_cast<std::size_t>(size - 1)](chunk, seen, params_.soft_cap, rows);
      });
    }
  }

  HWY_INLINE void write() const {
    for (std::int64_t row = 0; row < num_rows_; ++row) {
      const V16 inverse = set(1.0F / reduce_sum(load(sums_ + row * kLanes)));
      float* acc = acc_ + row * acc_stride_;
      for (std::int64_t d = 0; d < acc_stride_; d += kLanes)
        store(mul(load(acc + d), inverse), acc + d);
      float* to = task_.out + query(row) * task_.out_stride + head(row) * pages_.head_dim;
      std::memcpy(to, acc, static_cast<std::size_t>(pages_.head_dim) * sizeof(float));
    }
  }

 private:
  [[nodiscard]] std::int64_t query(std::int64_t row) const { return row / heads_.size(); }
  [[nodiscard]] std::int64_t head(std::int64_t row) const {
    return heads_.begin + row % heads_.size();
  }

  /// What `size` rows from `begin` on see of the chunk that begins at position `first`.
  [[nodiscard]] HWY_INLINE Seen seen_by(std::int64_t begin, std::int64_t size,
                                        std::int64_t first) const {
    Seen seen;
    std::int64_t position = task_.first_position + query(begin);
    std::int64_t head_of_query = begin % heads_.size();
    for (std::int64_t r = 0; r < size; ++r, ++head_of_query) {
      if (head_of_query == heads_.size()) {
        head_of_query = 0;
        ++position;
      }
      const std::int64_t from = first_seen(position, params_.window);
      seen.end[r] = std::clamp<std::int64_t>(position + 1 - first, 0, kChunk);
      seen.begin[r] = std::clamp<std::int64_t>(from - first, 0, seen.end[r]);
    }
    return seen;
  }

  /// body(kv head, first row, rows): rows of one kv head in tiles.
  template <typename Body>
  HWY_INLINE void for_each_tile(const Body& body) const {
    std::int64_t row = 0;
    while (row < num_rows_) {
      const std::int64_t kv_head = head(row) / pages_.group;
      const std::int64_t end =
          task_.num_queries > 1 ? num_rows_
                                : std::min(num_rows_, (kv_head + 1) * pages_.group - heads_.begin);
      const Tiling tiling{.rows = end - row, .max_rows = kMaxRows};
      for (std::int64_t tile = 0; tile < tiling.count(); ++tile) {
        const std::int64_t begin = tiling.begin(tile);
        body(kv_head, row + begin, tiling.begin(tile + 1) - begin);
      }
      row = end;
    }
  }

  const AttentionPages& pages_;
  const AttentionParams& params_;
  const AttentionTask& task_;
  Range heads_;
  std::int64_t num_rows_;
  std::int64_t acc_stride_;
  float* acc_;      // [rows][acc_stride]
  float* sums_;     // [rows][16]
  float* q_;        // tiles of [head_dim][rows]
  float* maximum_;  // [rows]
};

template <typename T>
void attend_typed(const AttentionPages& pages, const AttentionParams& params,
                  const AttentionTask& task, float* scratch) {
  Range heads = task.heads;
  while (heads.size() > 0) {
    Range part = heads;
    // With one query all heads of a page are read while it is near; with more, one kv head's rows
    // fill the cache.
    if (task.num_queries > 1) {
      part.end = std::min(heads.end, (heads.begin / pages.group + 1) * pages.group);
    }
    Attention<T> attention(pages, params, task, part, scratch);
    attention.run();
    attention.write();
    heads.begin = part.end;
  }
}

void attend(const AttentionPages& pages, const AttentionParams& params, const AttentionTask& task,
            float* scratch) {
  if (pages.type == KvType::kF16) {
    attend_typed<std::uint16_t>(pages, params, task, scratch);
  } else {
    attend_typed<float>(pages, params, task, scratch);
  }
}

}  // namespace

AttentionKernels attention_table() {
  return {.attend = &attend};
}

}  // namespace brigade::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace brigade::kernels {

std::int64_t attention_scratch_size(std::int64_t rows, std::int64_t head_dim) {
  const std::int64_t padded = (head_dim + 15) / 16 * 16;
  return rows * (padded + 16 + head_dim + 1);
}

AttentionKernels attention_kernels(CpuTarget target) {
  switch (target) {
#if HWY_TARGETS & HWY_AVX3_DL
    case CpuTarget::kAvx3Dl:
      return N_AVX3_DL::attention_table();
#endif
#if HWY_TARGETS & HWY_AVX2
    case CpuTarget::kAvx2:
      return N_AVX2::attention_table();
#endif
    default:
      return HWY_NAMESPACE::attention_table();
  }
}

}  // namespace brigade::kernels
#endif  // HWY_ONCE
