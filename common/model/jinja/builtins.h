// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/jinja/callable.h"
#include "common/model/jinja/context.h"

namespace brigade::model::jinja {

using Test = bool (*)(Context& context, const Value& value, const Args& args);

/// What the language brings along, by name; nullptr where there is no such thing. To widen it, add
/// to the tables in filters*.cpp, tests.cpp, methods.cpp and functions.cpp.
[[nodiscard]] Function find_filter(std::string_view name);
[[nodiscard]] Test find_test(std::string_view name);
[[nodiscard]] Function find_method(const Value& object, std::string_view name);
[[nodiscard]] Function find_global(std::string_view name);

/// Arguments put into the order of the parameters.
class Bound final {
 public:
  /// Fails, naming the function, when there are too many, one is unknown or given twice, or one of
  /// the first `required` is missing.
  Bound(std::string_view function, const Args& args, std::initializer_list<std::string_view> names,
        std::size_t required = 0);

  /// nullptr: not given.
  const Value* operator[](std::size_t index) const { return values_[index]; }
  [[nodiscard]] std::int64_t integer(std::size_t index, std::int64_t fallback) const;
  [[nodiscard]] bool truthy(std::size_t index, bool fallback) const;
  /// The string given; nullptr when none or None is. Fails on other kinds.
  [[nodiscard]] const Text* text(std::size_t index) const;
  /// As text, for one that is required.
  [[nodiscard]] const Text& string(std::size_t index) const;

 private:
  std::string_view function_;
  std::vector<const Value*> values_;
};

/// `object[key]`: an item, else undefined.
[[nodiscard]] Value get_item(Context& context, const Value& object, const Value& key);
/// `object.name`: attribute or method, else item, else undefined.
[[nodiscard]] Value get_attribute(Context& context, const Value& object, const std::string& name);
/// The attribute of filters: `a.b.0` goes down step by step, items first.
[[nodiscard]] Value get_path(Context& context, const Value& object, const Value& path);

/// The text of what a string filter is given: strings themselves, others printed.
[[nodiscard]] Text filter_text(Context& context, const Value& value);

}  // namespace brigade::model::jinja
