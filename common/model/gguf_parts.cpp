// SPDX-License-Identifier: Apache-2.0
#include "common/model/gguf_parts.h"

#include <array>
#include <cstdio>

#include "common/base/strings.h"

namespace brigade::model {
namespace {

constexpr std::string_view kNumberKey = "split.no";
constexpr std::string_view kCountKey = "split.count";

/// `-00002-of-00007.gguf`
std::string suffix(std::int64_t index, std::int64_t count) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "-%05lld-of-%05lld.gguf",
                static_cast<long long>(index + 1), static_cast<long long>(count));
  return text.data();
}

}  // namespace

Result<std::int64_t> count_parts(const GgufHeader& first, const std::string& path) {
  if (!first.metadata.contains(kCountKey)) return 1;
  ASSIGN_OR_RETURN(const std::int64_t count, first.integer(kCountKey));
  // What is not split may still say so.
  if (count <= 1) return 1;
  if (count > kMaxParts) {
    return data_loss(
        str_cat(key_context(kCountKey), " is ", count, "; at most ", kMaxParts, " parts are read"));
  }
  ASSIGN_OR_RETURN(const std::int64_t number, first.integer(kNumberKey));
  if (number != 0) {
    return invalid_argument(str_cat("part ", number + 1, " of a model in ", count,
                                    " parts: name the first, which ends in ", suffix(0, count)));
  }
  if (!path.ends_with(suffix(0, count))) {
    return invalid_argument(str_cat("the first of ", count,
                                    " parts; so that the others are found, its name must end in ",
                                    suffix(0, count)));
  }
  return count;
}

std::string first_part_stem(const std::string& first_path, std::int64_t count) {
  return first_path.substr(0, first_path.size() - suffix(0, count).size());
}

std::string part_path(const std::string& first_path, std::int64_t index, std::int64_t count) {
  return first_part_stem(first_path, count) + suffix(index, count);
}

Status check_part(const GgufHeader& part, std::int64_t index, std::int64_t count) {
  ASSIGN_OR_RETURN(const std::int64_t own_count, part.integer(kCountKey));
  ASSIGN_OR_RETURN(const std::int64_t own_number, part.integer(kNumberKey));
  if (own_count == count && own_number == index) return {};
  return data_loss(str_cat("says it is part ", own_number + 1, " of ", own_count, ", not ",
                           index + 1, " of ", count, ": is it of another model?"));
}

}  // namespace brigade::model
