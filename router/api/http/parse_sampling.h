// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/wire/generation.h"
#include "router/api/http/fields.h"

namespace brigade::router {

/// Temperature, penalties, masks, seed, stop, priority and the like: what both APIs share. Errors
/// stay in the reader.
void read_sampling(FieldReader& fields, wire::GenerationParams& out);

}  // namespace brigade::router
