// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/base/status.h"
#include "common/base/strings.h"

namespace brigade::model::jinja {

/// Thrown inside this folder alone: a recursive evaluator would otherwise test a Status after every
/// operand. ChatTemplate turns it back into a Status.
struct Error {
  Status status;
  bool is_own = false;  ///< the template's own words, to be given as they are
};

[[noreturn]] inline void fail(std::string message) {
  throw Error{invalid_argument(std::move(message))};
}

inline constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
inline constexpr int kMaxParseDepth = 100;  ///< of a syntax tree
inline constexpr int kMaxEvalDepth = 250;   ///< of nested evaluation, macro calls included
inline constexpr int kMaxValueDepth = 60;   ///< of lists in lists
inline constexpr std::size_t kMaxOutputBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxRange = 100'000;  ///< as Jinja's sandbox has it

/// What one rendering may spend. Steps are time (about 100 ns each), bytes are all memory ever
/// taken, freed or not.
class Budget final {
 public:
  void step(std::size_t count = 1) {
    if (count > steps_) {
      throw Error{resource_exhausted(str_cat("more than ", kSteps, " steps"))};
    }
    steps_ -= count;
  }

  /// Before `count` bytes are taken (or read: touching 64 bytes is a step).
  void bytes(std::size_t count) {
    step(count / 64);
    if (count > bytes_) {
      throw Error{resource_exhausted(str_cat("more than ", kBytes, " bytes"))};
    }
    bytes_ -= count;
  }

 private:
  static constexpr std::size_t kSteps = 3'000'000;
  static constexpr std::size_t kBytes = std::size_t{128} << 20;
  std::size_t steps_ = kSteps;
  std::size_t bytes_ = kBytes;
};

}  // namespace brigade::model::jinja
