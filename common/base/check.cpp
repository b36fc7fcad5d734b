// SPDX-License-Identifier: Apache-2.0
#include "common/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace brigade::internal {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  message_ << file << ':' << line << ": INVARIANT(" << condition << ") failed: ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", message_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace brigade::internal
