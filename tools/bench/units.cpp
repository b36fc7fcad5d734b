// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "common/base/strings.h"

namespace brigade::tools {
namespace {

constexpr double kLongest = 7 * 24 * 3600;

struct Unit {
  std::string_view name;
  double seconds;
};
constexpr std::array<Unit, 5> kUnits = {{{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}}};

std::string three_digits(double value, const char* unit) {
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f%s", decimals, value, unit);
  return text.data();
}

}  // namespace

Result<double> parse_seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : kUnits) {
    if (error != std::errc() || unit.name != name) continue;
    const double seconds = value * unit.seconds;
    if (seconds > 0 && seconds <= kLongest) return seconds;
  }
  return invalid_argument(str_cat(
      "expected a time such as 200ms, 1.5s or 2m, above 0 and at most a week, got ", quoted(text)));
}

std::string format_seconds(double seconds) {
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6, " us");
  if (seconds < 0.9995) return three_digits(seconds * 1e3, " ms");
  return three_digits(seconds, " s");
}

std::string format_count(double count) {
  if (count >= 999.5e6) return three_digits(count * 1e-9, " G");
  if (count >= 999.5e3) return three_digits(count * 1e-6, " M");
  if (count >= 9999.5) return three_digits(count * 1e-3, " k");
  if (count >= 99.95 || count == std::floor(count)) {
    return std::to_string(static_cast<long long>(std::llround(count)));
  }
  return three_digits(count, "");
}

}  // namespace brigade::tools
