// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/unsupported.h"

#include <algorithm>
#include <initializer_list>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

bool is_number(const JsonValue& value, double wanted) {
  if (const auto* i = std::get_if<std::int64_t>(&value.data)) {
    return static_cast<double>(*i) == wanted;
  }
  const auto* d = std::get_if<double>(&value.data);
  return d != nullptr && *d == wanted;
}

bool is_text(const JsonValue& value, std::initializer_list<std::string_view> wanted) {
  const std::string* text = value.as_string();
  return text != nullptr && std::find(wanted.begin(), wanted.end(), *text) != wanted.end();
}

bool is_empty(const JsonValue& value) {
  if (const auto* array = value.as_array()) return array->empty();
  if (const auto* object = value.as_object()) return object->empty();
  const auto* text = value.as_string();
  return text != nullptr && text->empty();
}

bool is_false(const JsonValue& value) {
  return value.as_bool() != nullptr && !*value.as_bool();
}
bool is_true(const JsonValue& value) {
  return value.as_bool() != nullptr && *value.as_bool();
}

bool is_plain_format(const JsonValue& value) {
  const JsonValue* type = value.find("type");
  return type != nullptr && is_text(*type, {"text"});
}

bool is_only_text(const JsonValue& value) {
  const auto* array = value.as_array();
  return array != nullptr && std::all_of(array->begin(), array->end(), [](const JsonValue& item) {
           return is_text(item, {"text"});
         });
}

struct Rule {
  std::string_view name;
  bool (*harmless)(const JsonValue&);  ///< the value changes nothing
  std::string_view allowed;            ///< said in the error
};

bool never(const JsonValue&) {
  return false;
}
bool zero(const JsonValue& v) {
  return is_number(v, 0);
}
bool one(const JsonValue& v) {
  return is_number(v, 1);
}

constexpr Rule kRules[] = {
    {"tools", is_empty, "an empty list"},
    {"functions", is_empty, "an empty list"},
    {"tool_choice",
     [](const JsonValue& v) {
       return is_text(v, {"none", "auto"});
     },
     "\"none\" or \"auto\""},
    {"function_call",
     [](const JsonValue& v) {
       return is_text(v, {"none", "auto"});
     },
     "\"none\" or \"auto\""},
    {"response_format", is_plain_format, "{\"type\":\"text\"}"},
    {"structured_outputs", is_empty, "{}"},
    {"guided_json", never, "null"},
    {"guided_regex", never, "null"},
    {"guided_choice", never, "null"},
    {"guided_grammar", never, "null"},
    {"regex", never, "null"},
    {"ebnf", never, "null"},
    {"json_schema", never, "null"},
    {"structural_tag", never, "null"},
    {"logit_bias", is_empty, "{}"},
    {"presence_penalty", zero, "0"},
    {"frequency_penalty", zero, "0"},
    {"repetition_penalty", one, "1"},
    {"min_p", zero, "0"},
    {"typical_p", one, "1"},
    {"suffix", is_empty, "\"\""},
    {"use_beam_search", is_false, "false"},
    {"bad_words", is_empty, "an empty list"},
    {"allowed_token_ids", is_empty, "an empty list"},
    {"logits_processors", is_empty, "an empty list"},
    {"prompt_embeds", never, "null"},
    {"prompt_logprobs", never, "null (ask for echo with logprobs)"},
    {"truncate_prompt_tokens", never, "null"},
    {"include_stop_str_in_output", is_false, "false"},
    {"no_stop_trim", is_false, "false"},
    {"skip_special_tokens", is_true, "true"},
    {"return_hidden_states", is_false, "false"},
    {"continue_final_message", is_false, "false"},
    {"chat_template", never, "null"},
    {"chat_template_kwargs", is_empty, "{}"},
    {"documents", is_empty, "an empty list"},
    {"modalities", is_only_text, "[\"text\"]"},
    {"audio", never, "null"},
    {"web_search_options", never, "null"},
    {"cache_salt", never, "null"},
};

}  // namespace

void refuse_unsupported(FieldReader& fields) {
  for (const Rule& rule : kRules) {
    const JsonValue* value = fields.get(rule.name);
    if (value == nullptr || rule.harmless(*value)) continue;
    const std::string name = fields.full_name(rule.name);
    fields.fail({.status = 400,
                 .message = str_cat(name, " is not supported yet: only ", rule.allowed,
                                    " is taken, not ", describe(*value), "."),
                 .param = name,
                 .code = "unsupported_parameter"});
    return;
  }
}

}  // namespace brigade::router
