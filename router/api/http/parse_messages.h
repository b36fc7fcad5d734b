// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "router/api/http/fields.h"
#include "router/api/http/parse.h"

namespace brigade::router {

/// messages, add_generation_prompt, continue_final_message, tools and chat_template_kwargs.
/// Errors stay in the reader.
void read_chat_args(FieldReader& fields, ChatArgs& out);

}  // namespace brigade::router
