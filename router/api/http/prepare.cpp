// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/prepare.h"

#include <algorithm>

#include "common/base/strings.h"
#include "router/api/http/json_write.h"
#include "router/api/prompt.h"

namespace brigade::router {
namespace {

constexpr std::uint32_t kDefaultCompletionTokens = 16;

std::string token_texts(const model::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  return tokenizer.decode(ids, /*special=*/true);
}

bool starts_with_added_bos(const model::Tokenizer& tokenizer, std::string_view text,
                           const std::vector<std::int32_t>& ids) {
  const auto bos = tokenizer.bos_id();
  return bos && ids.front() == *bos &&
         !text.starts_with(tokenizer.token_bytes(*bos, /*special=*/true));
}

/// Leaves the last tokens, as many as asked for. True when it cut some.
bool truncate(const ServedModel& model, const GenerationCallArgs& args,
              std::vector<std::int32_t>& ids) {
  if (!args.truncate_prompt_tokens) return false;
  std::int64_t most = *args.truncate_prompt_tokens;
  if (most < 0) most = model.max_context - args.params.max_tokens.value_or(1);
  const auto excess = static_cast<std::int64_t>(ids.size()) - std::max<std::int64_t>(most, 1);
  if (excess <= 0) return false;
  ids.erase(ids.begin(), ids.begin() + excess);
  return true;
}

ApiError prompt_error(std::string_view field, const Status& status) {
  ApiError error = from_status(status);
  error.param = std::string(field);
  return error;
}

std::optional<ApiError> encode_prompt(const ServedModel& model, const GenerationCallArgs& args,
                                      const PromptInput& input, PreparedPrompt& out) {
  const std::string* text = std::get_if<std::string>(&input);
  auto ids = text != nullptr
                 ? prompt_from_text(model, *text, {.add_special_tokens = args.add_special_tokens})
                 : prompt_from_ids(model, std::get<std::vector<std::int32_t>>(input));
  if (!ids.ok()) return prompt_error("prompt", ids.status());
  out.ids = std::move(ids).value();
  if (out.ids.empty()) return bad_field("prompt", "prompt is empty: it has no tokens.");
  const bool is_whole_text = !truncate(model, args, out.ids) && text != nullptr;
  if (args.answer.echo) {
    out.echo = is_whole_text ? *text : token_texts(*model.tokenizer, out.ids);
  }
  out.bos_added = is_whole_text && starts_with_added_bos(*model.tokenizer, *text, out.ids);
  return std::nullopt;
}

Result<std::vector<std::int32_t>> encode_chat(const ServedModel& model, const ChatArgs& args,
                                              bool add_special_tokens) {
  return prompt_from_messages(model, args.messages,
                              {.add_generation_prompt = args.add_generation_prompt,
                               .add_special_tokens = add_special_tokens,
                               .continue_final_message = args.continue_final_message,
                               .globals = args.globals});
}

std::optional<ApiError> encode_prompts(const ServedModel& model, const GenerationCallArgs& args,
                                       std::vector<PreparedPrompt>& out) {
  if (args.answer.api == Api::kChat) {
    auto ids = encode_chat(model, args.chat, args.add_special_tokens);
    if (!ids.ok()) return prompt_error("messages", ids.status());
    out.push_back({.ids = std::move(ids).value()});
    (void)truncate(model, args, out.back().ids);
    if (out.back().ids.empty()) return bad_field("messages", "messages have no tokens.");
    return std::nullopt;
  }
  for (const PromptInput& input : args.prompts) {
    if (auto error = encode_prompt(model, args, input, out.emplace_back())) return error;
  }
  return std::nullopt;
}

/// Prompt and output must fit the context. Sets the default length of a completion, cut to what is
/// left.
std::optional<ApiError> check_context(const ServedModel& model, PreparedGeneration& out) {
  const auto longest =
      std::max_element(out.prompts.begin(), out.prompts.end(),
                       [](const auto& a, const auto& b) { return a.ids.size() < b.ids.size(); });
  const auto prompt = static_cast<std::int64_t>(longest->ids.size());
  const bool given = out.params.max_tokens.has_value();
  const std::int64_t wanted = given ? *out.params.max_tokens : 1;
  if (prompt + wanted > model.max_context) {
    return ApiError{
        .status = 400,
        .message = str_cat("This model's maximum context length is ", model.max_context,
                           " tokens. However, you requested ", prompt + wanted, " tokens (", prompt,
                           " in the prompt, ", given ? "" : "at least ", wanted,
                           " for the completion). Please reduce the length of the prompt or of ",
                           "the completion."),
        .param = out.answer.api == Api::kChat ? "messages" : "prompt",
        .code = "context_length_exceeded"};
  }
  if (!given && out.answer.api == Api::kCompletions) {
    out.params.max_tokens = static_cast<std::uint32_t>(
        std::min<std::int64_t>(kDefaultCompletionTokens, model.max_context - prompt));
    out.params.min_tokens = std::min(out.params.min_tokens, *out.params.max_tokens);
  }
  return std::nullopt;
}

std::optional<ApiError> tokenize(const Service& service, const TokenizeArgs& args,
                                 std::shared_ptr<const ServedModel>& model,
                                 std::vector<std::int32_t>& out) {
  if (auto error = resolve_model(service, args.model, model)) return error;
  auto ids = args.prompt ? prompt_from_text(*model, *args.prompt,
                                            {.add_special_tokens = args.add_special_tokens})
                         : encode_chat(*model, args.chat, args.add_special_tokens);
  if (!ids.ok()) return prompt_error(args.prompt ? "prompt" : "messages", ids.status());
  out = std::move(ids).value();
  return std::nullopt;
}

}  // namespace

Request PreparedGeneration::request(std::size_t choice) const {
  Request request{.tenant = "default",
                  .model = model->name,
                  .prompt = prompts[choice / answer.n].ids,
                  .group = answer.n > 1 ? first_group + choice / answer.n : 0,
                  .params = params,
                  .bad_words = bad_words};
  if (params.seed) request.params.seed = *params.seed + choice % answer.n;
  return request;
}

std::optional<ApiError> resolve_model(const Service& service, const std::string& name,
                                      std::shared_ptr<const ServedModel>& out) {
  const auto& models = service.models();
  if (!name.empty()) {
    out = service.find_model(name);
    if (out == nullptr) return model_not_found(name);
    return std::nullopt;
  }
  if (models.size() != 1) {
    return bad_field("model", str_cat("model is missing: this server has ", models.size(),
                                      " models, see /v1/models."));
  }
  out = models.front();
  return std::nullopt;
}

std::optional<ApiError> prepare_generation(const Service& service, std::string_view body, Api api,
                                           PreparedGeneration& out) {
  GenerationCallArgs args;
  if (auto error = parse_generation(body, api, args)) return error;
  if (auto error = resolve_model(service, args.model, out.model)) return error;
  if (auto error = encode_prompts(*out.model, args, out.prompts)) return error;
  out.bad_words = bad_word_tokens(*out.model, args.params.bad_words);
  out.params = std::move(args.params);
  out.answer = args.answer;
  return check_context(*out.model, out);
}

HttpReply answer_tokenize(const Service& service, std::string_view body) {
  TokenizeArgs args;
  if (auto error = parse_tokenize(body, args)) return to_reply(*error);
  std::shared_ptr<const ServedModel> model;
  std::vector<std::int32_t> ids;
  if (auto error = tokenize(service, args, model, ids)) return to_reply(*error);
  std::string out =
      str_cat("{\"count\":", ids.size(), ",\"max_model_len\":", model->max_context, ",\"tokens\":");
  append_json_list(out, ids,
                   [](std::string& text, std::int32_t id) { append_json_number(text, id); });
  out += ",\"token_strs\":";
  if (args.return_token_strs) {
    append_json_list(out, ids, [&](std::string& text, std::int32_t id) {
      append_json_string(text, model->tokenizer->token_bytes(id, /*special=*/true));
    });
  } else {
    out += "null";
  }
  out += '}';
  return {.body = std::move(out)};
}

HttpReply answer_detokenize(const Service& service, std::string_view body) {
  DetokenizeArgs args;
  if (auto error = parse_detokenize(body, args)) return to_reply(*error);
  std::shared_ptr<const ServedModel> model;
  if (auto error = resolve_model(service, args.model, model)) return to_reply(*error);
  auto ids = prompt_from_ids(*model, std::move(args.tokens));
  if (!ids.ok()) return to_reply(prompt_error("tokens", ids.status()));
  std::string out = "{\"prompt\":";
  append_json_string(out, token_texts(*model->tokenizer, *ids));
  out += '}';
  return {.body = std::move(out)};
}

}  // namespace brigade::router
