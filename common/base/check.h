// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>

namespace brigade::internal {

/// Collects the message of a failed INVARIANT and ends the process when it goes out of scope.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace brigade::internal

/// (Named INVARIANT and not CHECK, which is doctest's.)
/// A broken invariant of our own ends the process with the condition, the place and both values:
/// `INVARIANT(a == b) << a << " != " << b;`. Never for input from outside: that is a Status.
#define INVARIANT(condition)                     \
  (condition) ? (void)0                          \
              : ::brigade::internal::Voidify() & \
                    ::brigade::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#define INVARIANT_EQ(a, b) INVARIANT((a) == (b)) << (a) << " vs " << (b) << ' '
#define INVARIANT_NE(a, b) INVARIANT((a) != (b)) << (a) << " vs " << (b) << ' '
#define INVARIANT_LT(a, b) INVARIANT((a) < (b)) << (a) << " vs " << (b) << ' '
#define INVARIANT_LE(a, b) INVARIANT((a) <= (b)) << (a) << " vs " << (b) << ' '
#define INVARIANT_GE(a, b) INVARIANT((a) >= (b)) << (a) << " vs " << (b) << ' '

/// As INVARIANT, for what is too costly in a release build (BRIGADE_CHECKS).
#ifdef BRIGADE_CHECKS
#define DEBUG_INVARIANT(condition) INVARIANT(condition)
#else
#define DEBUG_INVARIANT(condition) INVARIANT(true || (condition))
#endif
