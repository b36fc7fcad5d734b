// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/wire/fields.h"
#include "common/wire/messages.h"

/// The part of Admit that few sequences have. Shared by the codec's files alone.
namespace brigade::wire {

/// Null when no sequence has controls.
[[nodiscard]] Offset<fb::Controls> pack_controls(Builder& builder,
                                                 const std::vector<SequenceAdmit>& admit);
/// Gives each sequence its controls; what does not fit together is a fault in `fields`.
void unpack_controls(const fb::Controls* message, std::vector<SequenceAdmit>& admit,
                     Fields& fields);

}  // namespace brigade::wire
