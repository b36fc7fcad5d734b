// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "router/api/http/fields.h"

namespace brigade::router {

/// Refuses what would change the result and is not there: one table says what. Values that change
/// nothing (null, an empty list, a plain response_format) pass, and so do fields that nobody knows.
void refuse_unsupported(FieldReader& fields);

}  // namespace brigade::router
