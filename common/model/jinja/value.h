// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/model/jinja/text.h"

namespace brigade::model::jinja {

class Value;
struct Array;
struct Dict;
struct Namespace;
struct Callable;
struct LoopState;

struct Undefined {
  std::string name;  ///< for messages: what was looked up
};
struct None {};

/// A value of the template language. Strings, lists and dicts are immutable and shared; only a
/// namespace changes.
class Value final {
 public:
  using Variant =
      std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const Text>,
                   std::shared_ptr<const Array>, std::shared_ptr<const Dict>, Namespace*,
                   std::shared_ptr<const Callable>, std::shared_ptr<const LoopState>>;

  Value() : data_(Undefined{}) {}
  Value(None none) : data_(none) {}            // NOLINT: implicit on purpose
  Value(bool value) : data_(value) {}          // NOLINT
  Value(std::int64_t value) : data_(value) {}  // NOLINT
  Value(double value) : data_(value) {}        // NOLINT
  Value(Text text);                            // NOLINT
  Value(Namespace* value) : data_(value) {}    // NOLINT
  Value(std::shared_ptr<const Callable> value) : data_(std::move(value)) {}   // NOLINT
  Value(std::shared_ptr<const LoopState> value) : data_(std::move(value)) {}  // NOLINT
  Value(const char*) = delete;                                                // would be a bool

  static Value undefined(std::string name);
  static Value string(std::string_view text, bool trusted);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /// Keys are distinct.
  static Value dict(std::vector<std::pair<Value, Value>> items);

  [[nodiscard]] bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  [[nodiscard]] bool is_none() const { return std::holds_alternative<None>(data_); }
  [[nodiscard]] bool is_bool() const { return std::holds_alternative<bool>(data_); }
  [[nodiscard]] bool is_integer() const { return std::holds_alternative<std::int64_t>(data_); }
  [[nodiscard]] bool is_float() const { return std::holds_alternative<double>(data_); }
  [[nodiscard]] bool is_number() const { return is_integer() || is_bool() || is_float(); }
  /// The value or, where it is of another kind, nullptr.
  [[nodiscard]] const Text* text() const;
  [[nodiscard]] const Array* array() const;
  [[nodiscard]] const Dict* dict() const;
  [[nodiscard]] Namespace* name_space() const;
  [[nodiscard]] const Callable* callable() const;
  [[nodiscard]] const LoopState* loop() const;
  /// Of a bool or integer.
  [[nodiscard]] std::int64_t integer() const;
  /// Of any number.
  [[nodiscard]] double number() const;
  [[nodiscard]] const Variant& data() const { return data_; }

  /// Lists within lists; 0 for what holds nothing.
  [[nodiscard]] int depth() const;
  [[nodiscard]] bool truthy() const;
  /// Python's name of the type, for messages.
  [[nodiscard]] std::string_view type_name() const;

 private:
  template <typename T>
  [[nodiscard]] const T* pointee() const {
    const auto* pointer = std::get_if<std::shared_ptr<const T>>(&data_);
    return pointer == nullptr ? nullptr : pointer->get();
  }
  Variant data_;
};

struct Array {
  std::vector<Value> items;
  bool is_tuple = false;
  int depth = 1;
};

/// In order of insertion. Looked up from the front: messages have few keys, and a look-up is
/// charged by length.
struct Dict {
  std::vector<std::pair<Value, Value>> items;
  int depth = 1;
};

/// The one mutable value, owned by the evaluator for the whole of a rendering (so that cycles leak
/// nothing).
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
};

}  // namespace brigade::model::jinja
