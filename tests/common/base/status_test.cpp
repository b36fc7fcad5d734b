// SPDX-License-Identifier: Apache-2.0
#include "common/base/status.h"

#include <doctest/doctest.h>

#include "common/base/strings.h"

namespace brigade {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return invalid_argument(str_cat(x, " is odd"));
  return x / 2;
}

Result<int> quarter(int x) {
  ASSIGN_OR_RETURN(const int once, half(x));
  ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

}  // namespace

TEST_CASE("an error travels up through ASSIGN_OR_RETURN with its message") {
  CHECK_EQ(quarter(8).value(), 2);
  const Result<int> failed = quarter(6);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.status() == invalid_argument("3 is odd"));
  CHECK(failed.status().with_context("quarter") == invalid_argument("quarter: 3 is odd"));
}

TEST_CASE("quoting escapes what could break a terminal or a log line") {
  CHECK(quoted("a\"b\n\x1b[0m") == "\"a\\\"b\\x0a\\x1b[0m\"");
  CHECK(quoted("abcdef", 3) == "\"abc\"...");
}

}  // namespace brigade
