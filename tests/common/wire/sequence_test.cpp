// SPDX-License-Identifier: Apache-2.0
#include "common/wire/sequence.h"

#include <doctest/doctest.h>

namespace brigade::wire {

TEST_CASE("a missing, repeated or malformed sequence frame is noticed") {
  SequenceOut out;
  SequenceIn in;
  const auto first = out.next();
  CHECK(in.accept(first).ok());
  CHECK_FALSE(in.accept(first).ok());
  CHECK(in.accept(out.next()).ok());
  (void)out.next();
  CHECK(in.accept(out.next()).message().find("message 2 is missing") != std::string::npos);
  CHECK_FALSE(in.accept({}).ok());
}

}  // namespace brigade::wire
