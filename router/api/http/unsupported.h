// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "router/api/http/fields.h"

namespace brigade::router {

/// Refuses what would change the result and is not there: one table says what. Values that change
/// nothing (a penalty of 0, an empty list of tools) pass, and so do fields that nobody knows.
void refuse_unsupported(FieldReader& fields);

}  // namespace brigade::router
