// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/status.h"
#include "common/model/architecture.h"
#include "common/model/spec.h"
#include "common/model/spec_keys.h"

/// The steps of read_spec, in this order. Each fills the fields of `spec` that it is about, out of
/// those filled before it.
namespace brigade::model {

[[nodiscard]] Status read_layers(const SpecKeys& keys, const Architecture& architecture,
                                 ModelSpec& spec);
/// rotary_dim and ropes: one for layers that see everything, and one for layers with a window where
/// theirs is another.
[[nodiscard]] Status read_rope(const SpecKeys& keys, const Architecture& architecture,
                               ModelSpec& spec);
/// Every tensor the spec needs is there with the right shape, and no other is.
[[nodiscard]] Status check_tensors(const GgufFile& file, const ModelSpec& spec);

}  // namespace brigade::model
