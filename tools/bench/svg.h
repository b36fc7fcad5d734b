// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/latency_histogram.h"

namespace brigade::tools {

/// `text` with what HTML and SVG would take for their own escaped.
[[nodiscard]] std::string escape_html(std::string_view text);

/// How often which latency came, over a logarithmic axis, with lines at p50, p90 and p99.
[[nodiscard]] std::string svg_histogram(const std::string& title, const LatencyHistogram& values);

/// A value over time, from 0; `width_s` between two points.
[[nodiscard]] std::string svg_line(const std::string& title, const std::vector<double>& values,
                                   double width_s);

}  // namespace brigade::tools
