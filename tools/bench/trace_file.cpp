// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <string_view>

#include "common/base/files.h"
#include "common/base/strings.h"
#include "tools/bench/workload.h"

namespace brigade::tools {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxTraceBytes = std::size_t{256} << 20;
constexpr double kLongestTrace = 7 * 24 * 3600;

/// A member that must be a whole number in [min, max].
Result<std::uint32_t> whole(const json::object& object, const char* name, std::uint32_t min,
                            std::uint32_t max) {
  const json::value* found = object.if_contains(name);
  boost::system::error_code error;
  const auto value = found == nullptr ? 0 : found->to_number<std::int64_t>(error);
  if (found == nullptr || error || value < min || value > max) {
    return invalid_argument(str_cat(name, " must be a whole number from ", min, " to ", max));
  }
  return static_cast<std::uint32_t>(value);
}

Result<TraceLine> parse_line(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return invalid_argument("it is no JSON object");
  TraceLine line;
  const json::value* time = object->if_contains("time");
  line.time_s = time == nullptr ? -1 : time->to_number<double>(error);
  if (error || !(line.time_s >= 0) || !std::isfinite(line.time_s)) {
    return invalid_argument("time must be a number of seconds, at least 0");
  }
  ASSIGN_OR_RETURN(line.prompt_tokens, whole(*object, "prompt_tokens", 1, Lengths::kLongest));
  ASSIGN_OR_RETURN(line.output_tokens, whole(*object, "output_tokens", 1, Lengths::kLongest));
  if (object->contains("prefix_group")) {
    ASSIGN_OR_RETURN(line.prefix_group, whole(*object, "prefix_group", 0, UINT32_MAX));
  }
  return line;
}

}  // namespace

Result<std::vector<TraceLine>> parse_trace(std::string_view text) {
  std::vector<TraceLine> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Result<TraceLine> parsed = parse_line(line);
    if (!parsed.ok()) return parsed.status().with_context(str_cat("line ", number));
    lines.push_back(*parsed);
  }
  if (lines.empty()) return invalid_argument("there is no request in it");
  std::ranges::stable_sort(lines, {}, &TraceLine::time_s);
  const double first = lines.front().time_s;
  for (TraceLine& line : lines)
    line.time_s -= first;
  if (lines.back().time_s > kLongestTrace) {
    return invalid_argument(str_cat("it lasts ", lines.back().time_s, " s, more than a week"));
  }
  return lines;
}

Result<std::vector<TraceLine>> read_trace(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxTraceBytes));
  Result<std::vector<TraceLine>> lines = parse_trace(text);
  if (!lines.ok()) return lines.status().with_context(str_cat("trace ", quoted(path)));
  return lines;
}

}  // namespace brigade::tools
