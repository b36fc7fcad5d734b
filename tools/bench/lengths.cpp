// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <optional>

#include "common/base/random.h"
#include "common/base/strings.h"

namespace brigade::tools {
namespace {

template <typename T>
std::optional<T> whole_number(std::string_view text) {
  T value = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return value;
}

struct Bounds {
  std::uint32_t min;
  std::uint32_t max;
};

/// `A..B`, or `N` for both.
std::optional<Bounds> parse_bounds(std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto min = whole_number<std::uint32_t>(text.substr(0, dots));
  const auto max =
      dots == std::string_view::npos ? min : whole_number<std::uint32_t>(text.substr(dots + 2));
  if (!min || !max || *min < 1 || *min > *max || *max > Lengths::kLongest) return std::nullopt;
  return Bounds{*min, *max};
}

/// The text up to the next comma, which is taken off `rest`.
std::string_view take_item(std::string_view& rest) {
  const std::size_t comma = rest.find(',');
  const std::string_view item = rest.substr(0, comma);
  rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  return item;
}

}  // namespace

Lengths Lengths::always(std::uint32_t length) {
  Lengths lengths;
  lengths.min_ = lengths.max_ = length;
  return lengths;
}

Result<Lengths> Lengths::parse(std::string_view text) {
  const auto refuse = [&] {
    return invalid_argument(
        str_cat("expected a number of tokens such as 128, 64..512, normal:256,64 or "
                "lognormal:256,200,16..2048 (at most ",
                kLongest, "), got ", quoted(text)));
  };
  Lengths lengths;
  const std::size_t colon = text.find(':');
  std::string_view rest = text;
  if (colon != std::string_view::npos) {
    const std::string_view name = text.substr(0, colon);
    rest = text.substr(colon + 1);
    if (name != "normal" && name != "lognormal") return refuse();
    lengths.kind_ = name == "normal" ? Kind::kNormal : Kind::kLognormal;
    const auto mean = whole_number<double>(take_item(rest));
    const auto deviation = whole_number<double>(take_item(rest));
    // Negated, so that NaN is refused too.
    if (!mean || !deviation || !(*mean >= 1 && *mean <= kLongest)) return refuse();
    if (!(*deviation >= 0 && *deviation <= kLongest)) return refuse();
    lengths.mean_ = *mean;
    lengths.deviation_ = *deviation;
    if (lengths.kind_ == Kind::kLognormal) {
      const double ratio = *deviation / *mean;
      lengths.deviation_ = std::sqrt(std::log1p(ratio * ratio));
      lengths.mean_ = std::log(*mean) - lengths.deviation_ * lengths.deviation_ / 2;
    }
    lengths.max_ = kLongest;
    if (rest.empty()) return lengths;
  }
  const auto bounds = parse_bounds(rest);
  if (!bounds) return refuse();
  lengths.min_ = bounds->min;
  lengths.max_ = bounds->max;
  return lengths;
}

std::uint32_t Lengths::draw(std::uint64_t seed, std::uint64_t counter) const {
  const double u = random_uniform(seed, counter, /*draw=*/0);
  if (kind_ == Kind::kUniform) {
    const double width = static_cast<double>(max_ - min_) + 1;
    return min_ + static_cast<std::uint32_t>(u * width);
  }
  // Box and Muller 1958; 1 - u is never 0.
  const double v = random_uniform(seed, counter, /*draw=*/1);
  const double z = std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi * v);
  const double drawn = mean_ + deviation_ * z;
  const double length = kind_ == Kind::kNormal ? drawn : std::exp(drawn);
  return static_cast<std::uint32_t>(
      std::lround(std::clamp(length, static_cast<double>(min_), static_cast<double>(max_))));
}

}  // namespace brigade::tools
