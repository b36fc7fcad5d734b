// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/parse_sampling.h"

#include <charconv>
#include <limits>

#include "common/base/strings.h"
#include "router/api/http/parse_fields.h"
#include "router/core/limits.h"

namespace brigade::router {
namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxUserBytes = 1024;

/// One string or a list of them, each of 1 to `max_bytes` bytes.
void read_strings(FieldReader& fields, std::string_view name, std::size_t max_strings,
                  std::size_t max_bytes, std::vector<std::string>& out) {
  const JsonValue* value = fields.get(name);
  if (value == nullptr) return;
  const auto add = [&](const JsonValue& item) {
    const std::string* text = item.as_string();
    if (text == nullptr || text->empty() || text->size() > max_bytes) {
      return fields.refuse(name, str_cat("one or a list of strings of 1 to ", max_bytes, " bytes"),
                           item);
    }
    out.push_back(*text);
  };
  const auto* list = value->as_array();
  if (list == nullptr) return add(*value);
  if (list->size() > max_strings) {
    return fields.refuse(name, str_cat("at most ", max_strings, " strings"), *value);
  }
  for (const JsonValue& item : *list)
    add(item);
}

void read_ids(FieldReader& fields, std::string_view name, std::size_t max_ids,
              std::vector<std::int32_t>& out) {
  const JsonValue* ids = fields.get(name);
  if (ids == nullptr) return;
  read_token_ids(fields, name, *ids, out);
  if (out.size() > max_ids) fields.refuse(name, str_cat("at most ", max_ids, " ids"), *ids);
}

/// {"TOKEN ID": BIAS}
void read_bias(FieldReader& fields, std::vector<wire::TokenBias>& out) {
  const JsonValue* value = fields.get("logit_bias");
  if (value == nullptr) return;
  const auto* object = value->as_object();
  if (object == nullptr || object->size() > kMaxBiases) {
    return fields.refuse("logit_bias", str_cat("an object of at most ", kMaxBiases, " token ids"),
                         *value);
  }
  FieldReader biases(*value, "logit_bias");
  for (const JsonMember& member : *object) {
    std::int32_t token = 0;
    const char* end = member.key.data() + member.key.size();
    const auto [parsed, error] = std::from_chars(member.key.data(), end, token);
    if (error != std::errc() || parsed != end || token < 0) {
      return fields.fail("logit_bias", str_cat("logit_bias has the key ", quoted(member.key),
                                               ", which is no token id."));
    }
    if (const auto bias = biases.number(member.key, -kMaxBias, kMaxBias)) {
      out.push_back({.token = token, .bias = static_cast<float>(*bias)});
    }
  }
  if (biases.error()) fields.fail(*biases.error());
}

void read_float(FieldReader& fields, std::string_view name, float min, float max, float& out) {
  if (const auto value = fields.number(name, min, max)) out = static_cast<float>(*value);
}

/// As read_float, and above 0.
void read_share(FieldReader& fields, std::string_view name, float& out) {
  read_float(fields, name, 0, 1, out);
  if (!(out > 0)) fields.fail(name, str_cat(name, " must be above 0."));
}

void read_distribution(FieldReader& fields, wire::GenerationParams& out) {
  read_float(fields, "temperature", 0, kMaxTemperature, out.temperature);
  read_share(fields, "top_p", out.top_p);
  read_float(fields, "min_p", 0, 1, out.min_p);
  read_share(fields, "typical_p", out.typical_p);
  if (const auto k = fields.integer("top_k", -1, kMaxInt32)) {
    out.top_k = static_cast<std::int32_t>(*k);
  }
  read_float(fields, "repetition_penalty", kMinRepetitionPenalty, kMaxRepetitionPenalty,
             out.repetition_penalty);
  read_float(fields, "presence_penalty", -kMaxPenalty, kMaxPenalty, out.presence_penalty);
  read_float(fields, "frequency_penalty", -kMaxPenalty, kMaxPenalty, out.frequency_penalty);
  read_bias(fields, out.logit_bias);
  out.seed = fields.bits("seed");
}

}  // namespace

void read_sampling(FieldReader& fields, wire::GenerationParams& out) {
  read_distribution(fields, out);
  if (const auto m = fields.integer("min_tokens", 0, kMaxInt32)) {
    out.min_tokens = static_cast<std::uint32_t>(*m);
  }
  out.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  if (const auto p = fields.integer("priority", -kMaxPriority, kMaxPriority)) {
    out.priority = static_cast<std::int32_t>(*p);
  }
  if (const auto d = fields.integer("deadline_ms", 1, kMaxInt32)) {
    out.deadline_ms = static_cast<std::uint32_t>(*d);
  }
  read_strings(fields, "stop", kMaxStopStrings, kMaxStopBytes, out.stop);
  read_ids(fields, "stop_token_ids", kMaxStopTokens, out.stop_token_ids);
  read_strings(fields, "bad_words", kMaxBadWords, kMaxBadWordBytes, out.bad_words);
  read_ids(fields, "allowed_token_ids", kMaxAllowedTokens, out.allowed_token_ids);
  if (fields.get("allowed_token_ids") != nullptr && out.allowed_token_ids.empty()) {
    fields.fail("allowed_token_ids", "allowed_token_ids is empty: it would allow nothing.");
  }
  out.include_stop_str = fields.boolean("include_stop_str_in_output").value_or(false);
  out.keep_special_tokens = !fields.boolean("skip_special_tokens").value_or(true);
  // Nothing to choose: no tokenizer here puts blanks between special tokens.
  (void)fields.boolean("spaces_between_special_tokens");
  (void)fields.string("user", kMaxUserBytes);
}

}  // namespace brigade::router
