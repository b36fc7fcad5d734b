// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/unsupported.h"

#include <algorithm>
#include <initializer_list>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

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

constexpr Rule kRules[] = {
    {"functions", is_empty, "an empty list"},
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
    {"suffix", is_empty, "\"\""},
    {"use_beam_search", is_false, "false"},
    {"logits_processors", is_empty, "an empty list"},
    {"prompt_embeds", never, "null"},
    {"no_stop_trim", is_false, "false"},
    {"return_hidden_states", is_false, "false"},
    {"chat_template", never, "null"},
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
