// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/wire/client.h"
#include "common/wire/fields.h"
#include "common/wire/messages.h"
#include "common/wire/stage_link.h"

/// One function a root: fills the builder and finishes it. Implementation of Encoder.
namespace brigade::wire {

void pack(Builder& builder, const FromWorker& message);
void pack(Builder& builder, const ToWorker& message);
void pack(Builder& builder, const StageLinkMessage& message);
void pack(Builder& builder, const ToRouter& message);
void pack(Builder& builder, const FromRouter& message);

}  // namespace brigade::wire
