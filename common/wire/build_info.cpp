// SPDX-License-Identifier: Apache-2.0
#include "common/wire/build_info.h"

#include "common/wire/build_id_generated.h"

namespace brigade::wire {

std::string_view schema_hash() {
  return BRIGADE_SCHEMA_HASH;
}

std::string_view build_id() {
  return BRIGADE_BUILD_ID;
}

}  // namespace brigade::wire
