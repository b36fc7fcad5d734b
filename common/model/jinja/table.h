// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace brigade::model::jinja {

template <typename Function>
struct Entry {
  std::string_view name;
  Function function;
};

/// The function of a table of builtins, which is sorted by name; nullptr where there is none.
template <typename Function, std::size_t N>
[[nodiscard]] Function find_entry(const Entry<Function> (&table)[N], std::string_view name) {
  const auto* const it = std::lower_bound(
      std::begin(table), std::end(table), name,
      [](const Entry<Function>& entry, std::string_view wanted) { return entry.name < wanted; });
  return it != std::end(table) && it->name == name ? it->function : nullptr;
}

template <typename Function, std::size_t N>
[[nodiscard]] constexpr bool is_sorted_table(const Entry<Function> (&table)[N]) {
  for (std::size_t i = 1; i < N; ++i) {
    if (!(table[i - 1].name < table[i].name)) return false;
  }
  return true;
}

}  // namespace brigade::model::jinja
