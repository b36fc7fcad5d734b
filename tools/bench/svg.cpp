// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/svg.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <sstream>

#include "tools/bench/units.h"

namespace brigade::tools {
namespace {

constexpr double kWidth = 720;
constexpr double kHeight = 220;
constexpr double kLeft = 60;
constexpr double kTop = 30;
constexpr double kPlotWidth = kWidth - kLeft - 20;
constexpr double kPlotHeight = kHeight - kTop - 35;
constexpr std::size_t kBins = 80;

std::ostringstream open_plot(const std::string& title) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1);
  out << "<svg viewBox=\"0 0 " << kWidth << ' ' << kHeight << "\" role=\"img\">\n"
      << "<text x=\"" << kLeft << "\" y=\"18\" class=\"title\">" << escape_html(title)
      << "</text>\n<path class=\"axis\" d=\"M" << kLeft << ' ' << kTop << " V" << kTop + kPlotHeight
      << " H" << kLeft + kPlotWidth << "\"/>\n";
  return out;
}

void label_x(std::ostringstream& out, double x, const std::string& text) {
  out << "<text x=\"" << x << "\" y=\"" << kTop + kPlotHeight + 18 << "\" text-anchor=\"middle\">"
      << text << "</text>\n";
}

void label_top(std::ostringstream& out, const std::string& text) {
  out << "<text x=\"" << kLeft - 6 << "\" y=\"" << kTop + 4 << "\" text-anchor=\"end\">" << text
      << "</text>\n";
}

/// A decimal logarithmic axis from `low` to `high`.
class LogAxis {
 public:
  LogAxis(double low, double high) : low_(std::log10(low)), high_(std::log10(high)) {}
  [[nodiscard]] double x(double value) const {
    return kLeft + kPlotWidth * (std::log10(value) - low_) / (high_ - low_);
  }
  /// 1, 2 and 5 times the powers of ten; the powers alone on a long axis.
  void label(std::ostringstream& out) const {
    for (int power = static_cast<int>(std::floor(low_)); power <= std::ceil(high_); ++power) {
      for (const double step : {1.0, 2.0, 5.0}) {
        const double value = step * std::pow(10.0, power);
        const bool shown = step == 1.0 || high_ - low_ < 2;
        const double at = std::log10(value);
        if (shown && at >= low_ && at <= high_) label_x(out, x(value), format_seconds(value));
      }
    }
  }

 private:
  double low_;
  double high_;
};

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string svg_histogram(const std::string& title, const LatencyHistogram& values) {
  std::ostringstream out = open_plot(title);
  const double low = std::max(values.min(), 1e-6) * 0.9;
  const double high = std::max(values.max(), low) * 1.1;
  const LogAxis axis(low, high);
  const auto bins = values.binned(low, high, kBins, /*logarithmic=*/true);
  const std::uint64_t most = std::max<std::uint64_t>(1, *std::ranges::max_element(bins));
  const double width = kPlotWidth / static_cast<double>(kBins);
  for (std::size_t i = 0; i < bins.size(); ++i) {
    if (bins[i] == 0) continue;
    const double height = kPlotHeight * static_cast<double>(bins[i]) / static_cast<double>(most);
    out << "<rect x=\"" << kLeft + width * static_cast<double>(i) << "\" y=\""
        << kTop + kPlotHeight - height << "\" width=\"" << width - 1 << "\" height=\"" << height
        << "\"/>\n";
  }
  label_top(out, format_count(static_cast<double>(most)));
  axis.label(out);
  for (const auto& [name, q] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}) {
    const double x = axis.x(std::max(values.percentile(q), low));
    out << "<path class=\"mark\" d=\"M" << x << ' ' << kTop << " V" << kTop + kPlotHeight
        << "\"/><text x=\"" << x + 3 << "\" y=\"" << kTop + 10 << "\">" << name << "</text>\n";
  }
  out << "</svg>\n";
  return out.str();
}

std::string svg_line(const std::string& title, const std::vector<double>& values, double width_s) {
  std::ostringstream out = open_plot(title);
  const double most = std::max(1e-9, values.empty() ? 0 : *std::ranges::max_element(values));
  const double steps = std::max(1.0, static_cast<double>(values.size()));
  out << "<polyline points=\"";
  for (std::size_t i = 0; i < values.size(); ++i) {
    out << kLeft + kPlotWidth * (static_cast<double>(i) + 0.5) / steps << ','
        << kTop + kPlotHeight * (1 - values[i] / most) << ' ';
  }
  out << "\"/>\n";
  label_top(out, format_count(most));
  for (const double part : {0.25, 0.5, 0.75, 1.0}) {
    label_x(out, kLeft + kPlotWidth * part, format_seconds(part * steps * width_s));
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace brigade::tools
