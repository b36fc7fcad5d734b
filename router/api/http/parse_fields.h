// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/http/fields.h"
#include "router/api/http/parse.h"

namespace brigade::router {

// Parts of a body that several endpoints share. Errors stay in the reader.

inline constexpr std::size_t kMaxModelName = 1024;

/// The object in the body, or an error.
[[nodiscard]] std::optional<ApiError> parse_object(std::string_view body, JsonValue& out);

/// `prompt` of completions: text, ids, or a list of either.
void read_prompts(FieldReader& fields, std::vector<PromptInput>& out);
/// A list of token ids (not yet checked against a vocabulary).
void read_token_ids(FieldReader& fields, std::string_view name, const JsonValue& value,
                    std::vector<std::int32_t>& out);

}  // namespace brigade::router
