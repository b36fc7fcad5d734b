// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "router/api/http/prepare.h"
#include "router/core/types.h"

namespace brigade::router {

/// One choice of an answer, and how far it has got.
struct Choice {
  std::uint32_t index = 0;
  const PreparedPrompt* prompt = nullptr;
  RequestId id = 0;
  bool submitted = false;
  bool finished = false;
  bool started = false;           ///< something of it has been written
  std::uint64_t text_offset = 0;  ///< characters before the next token of its log-probabilities
  Output whole;                   ///< what has come so far; when streaming, usage alone
};

/// The JSON of one of the two APIs. Pure; what is written depends on the arguments alone.
class Responder {
 public:
  explicit Responder(const PreparedGeneration& call) : call_(call) {}
  virtual ~Responder() = default;
  static std::unique_ptr<Responder> make(const PreparedGeneration& call);

  [[nodiscard]] virtual std::string_view id_prefix() const = 0;
  /// The value of "object", in an event or in a whole answer.
  [[nodiscard]] virtual std::string_view object(bool delta) const = 0;
  /// The choice's object with what `output` adds (`delta`), or with all there is.
  virtual void append_choice(std::string& out, Choice& choice, const Output& output,
                             bool delta) const = 0;
  /// Members beside "choices", with a comma in front; `first`: nothing of the choice has been
  /// written before.
  virtual void append_extras(std::string& out, const Choice& choice, bool first) const = 0;

  /// Whether an event is due for this output: no event says nothing.
  [[nodiscard]] bool has_news(const Choice& choice, const Output& output) const;

 protected:
  /// `,"finish_reason":..,"stop_reason":..` and the ids where they are asked for.
  void append_ending(std::string& out, const Output& output) const;
  static void append_ids(std::string& out, std::string_view name,
                         std::span<const std::int32_t> ids);
  /// `,"prompt_logprobs":[null,{"ID":{"logprob","rank","decoded_token"},..},..]`, vLLM's shape,
  /// where it is asked for. A rank is known of those among the best, of others null.
  void append_prompt_logprobs(std::string& out, const Output& output) const;
  /// The token as a JSON string, or as `token_id:N` where that is asked for.
  void append_token(std::string& out, std::int32_t id, bool bytes_form) const;
  [[nodiscard]] std::string_view bytes_of(std::int32_t id) const {
    return call_.model->tokenizer->token_bytes(id, /*special=*/true);
  }
  [[nodiscard]] const PreparedGeneration& call() const { return call_; }

 private:
  const PreparedGeneration& call_;
};

/// {"prompt_tokens":..,"completion_tokens":..,"total_tokens":..,"prompt_tokens_details":{..}}
void append_usage(std::string& out, const Usage& usage);

}  // namespace brigade::router
