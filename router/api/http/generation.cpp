// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/generation.h"

#include <atomic>
#include <span>
#include <utility>

#include "common/base/strings.h"
#include "router/api/http/json_write.h"
#include "router/api/http/sse.h"

namespace brigade::router {
namespace {

bool is_end(const Output& output) {
  return output.finish != wire::FinishReason::kNone;
}

/// An end that is no answer: an error, or a cancellation that no client asked for.
bool is_failure(const Output& output) {
  return output.finish == wire::FinishReason::kError ||
         output.finish == wire::FinishReason::kCancelled;
}

/// Of an answer that is kept until it is whole: a stream's client takes it as it comes.
constexpr std::size_t kMaxAnswerBytes = 64 << 20;
/// Of one token's log-probability, as JSON with its text.
constexpr std::size_t kScoreBytes = 32;

/// About what the output adds to an answer.
std::size_t answer_bytes(const Output& output) {
  std::size_t scores = 0;
  const auto add = [&scores](std::span<const wire::OutputToken> tokens) {
    for (const wire::OutputToken& token : tokens)
      scores += 1 + token.top.size();
  };
  add(output.tokens);
  add(output.prompt_tokens);
  return output.text.size() + scores * kScoreBytes;
}

ApiError answer_too_large() {
  return {.status = 400,
          .message = str_cat("The answer has grown over ", kMaxAnswerBytes >> 20,
                             " MiB: ask for fewer choices or log-probabilities, or stream it."),
          .code = "answer_too_large"};
}

ApiError failure_of(const Output& output) {
  if (output.status.ok()) return from_status(internal_error("the request was cancelled"));
  return from_status(output.status, output.retry_after_s, output.drop_reason);
}

std::string label_of(const RequestRecord& record) {
  return record.traceparent.empty() ? record.request_id
                                    : str_cat(record.request_id, ", ", record.traceparent);
}

template <typename Vector>
void append_all(Vector& to, Vector&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

/// Brings the outputs of one choice to the I/O thread.
class GenerationCall::Sink final : public OutputSink {
 public:
  Sink(std::shared_ptr<GenerationCall> call, std::shared_ptr<Mailbox> mailbox, std::size_t index,
       std::string label)
      : call_(std::move(call)),
        mailbox_(std::move(mailbox)),
        index_(index),
        label_(std::move(label)) {}

  [[nodiscard]] std::string_view label() const override { return label_; }

  void on_output(Output output, TimePoint result_at) override {
    mailbox_->post(OutputMail{
        .to = call_, .index = index_, .result_at = result_at, .output = std::move(output)});
  }

 private:
  std::shared_ptr<GenerationCall> call_;
  std::shared_ptr<Mailbox> mailbox_;
  std::size_t index_;
  std::string label_;
};

void GenerationCall::start(Api api, std::string body) {
  auto job = [self = shared_from_this(), api, text = std::move(body)] {
    auto prepared = std::make_shared<PreparedGeneration>();
    auto error = prepare_generation(self->context_->service, text, api, *prepared);
    self->context_->mailbox->post([self, prepared, error = std::move(error)] {
      if (error) {
        self->fail(*error);
      } else {
        self->submit(std::move(*prepared));
      }
    });
  };
  if (!context_->service.run_in_pool(std::move(job))) {
    fail(overloaded("Too many requests wait to be tokenized."));
  }
}

void GenerationCall::submit(PreparedGeneration prepared) {
  if (exchange_ == nullptr) return;  // gone meanwhile
  prepared_ = std::move(prepared);
  responder_ = Responder::make(prepared_);
  id_ = make_id(responder_->id_prefix());
  created_s_ = unix_seconds();
  event_ = "data: " + opening(/*delta=*/true) + ",\"choices\":[";
  opening_bytes_ = event_.size();
  choices_.resize(prepared_.num_choices());
  static std::atomic<std::uint64_t> next_group{1};
  prepared_.first_group = next_group.fetch_add(prepared_.prompts.size());
  exchange_->record().model = prepared_.model->name;
  for (const PreparedPrompt& prompt : prepared_.prompts)
    exchange_->count_tokens(static_cast<std::uint32_t>(prompt.ids.size()), 0);
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].index = static_cast<std::uint32_t>(i);
    choices_[i].prompt = &prepared_.prompts[i / prepared_.answer.n];
  }
  if (prepared_.params.max_tokens == 0U && prepared_.params.num_prompt_logprobs < 0) {
    return answer_echo();
  }
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].submitted = true;
    Request request = prepared_.request(i);
    request.tenant = exchange_->record().tenant;
    choices_[i].id = context_->service.submit(
        std::move(request), std::make_shared<Sink>(shared_from_this(), context_->mailbox, i,
                                                   label_of(exchange_->record())));
  }
}

/// The prompt alone, without scores: there is nothing to compute.
void GenerationCall::answer_echo() {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Output output{.finish = wire::FinishReason::kLength};
    output.usage.prompt_tokens = static_cast<std::uint32_t>(choices_[i].prompt->ids.size());
    on_output(i, std::move(output), /*result_at=*/{});
  }
}

void GenerationCall::on_output(std::size_t index, Output&& output, TimePoint result_at) {
  Choice& choice = choices_[index];
  if (is_end(output)) choice.finished = true;
  if (exchange_ == nullptr) return;
  exchange_->count_tokens(0, static_cast<std::uint32_t>(output.tokens.size()));
  const bool end = is_end(output);
  if (end) {
    exchange_->record().finish_reason = wire::to_string(output.finish);
    exchange_->record().cached_tokens += output.usage.cached_tokens;
  }
  if (is_failure(output)) return fail(failure_of(output));
  if (prepared_.answer.stream) {
    stream_output(choice, output, result_at);
  } else {
    collect_output(choice, std::move(output));
  }
  if (end && ++num_finished_ == choices_.size()) finish();
}

void GenerationCall::stream_output(Choice& choice, const Output& output, TimePoint result_at) {
  choice.whole.usage.prompt_tokens = static_cast<std::uint32_t>(choice.prompt->ids.size());
  choice.whole.usage.completion_tokens += static_cast<std::uint32_t>(output.tokens.size());
  if (is_end(output)) choice.whole.usage = output.usage;
  if (!responder_->has_news(choice, output)) return;
  if (!std::exchange(streaming_, true)) exchange_->begin_stream();
  const bool first = !choice.started;
  event_.resize(opening_bytes_);
  responder_->append_choice(event_, choice, output, /*delta=*/true);
  event_ += ']';
  responder_->append_extras(event_, choice, first);
  if (prepared_.answer.continuous_usage) {
    event_ += ",\"usage\":";
    append_usage(event_, choice.whole.usage);
  } else if (prepared_.answer.include_usage) {
    event_ += ",\"usage\":null";
  }
  event_ += "}\n\n";
  // The client may be cut in here: then exchange_ is null afterwards.
  const std::shared_ptr<Exchange> exchange = exchange_;
  exchange->send(event_, result_at);
}

void GenerationCall::collect_output(Choice& choice, Output&& output) {
  collected_bytes_ += answer_bytes(output);
  if (collected_bytes_ > kMaxAnswerBytes) return fail(answer_too_large());
  Output& whole = choice.whole;
  whole.text += output.text;
  append_all(whole.tokens, std::move(output.tokens));
  append_all(whole.prompt_tokens, std::move(output.prompt_tokens));
  if (!is_end(output)) return;
  whole.finish = output.finish;
  whole.stop_reason = std::move(output.stop_reason);
  whole.usage = output.usage;
}

void GenerationCall::finish() {
  if (exchange_ == nullptr) return;
  if (prepared_.answer.stream) {
    finish_stream();
  } else {
    finish_whole();
  }
  release();
}

void GenerationCall::finish_stream() {
  const std::shared_ptr<Exchange> exchange = exchange_;
  if (prepared_.answer.include_usage) {
    event_.resize(opening_bytes_);
    event_ += "],\"usage\":";
    append_usage(event_, total_usage());
    event_ += "}\n\n";
    exchange->send(event_);
  }
  exchange->end_stream(kStreamEnd, /*close=*/false);
}

void GenerationCall::finish_whole() {
  std::string body = opening(/*delta=*/false);
  body += ",\"choices\":[";
  for (Choice& choice : choices_) {
    if (choice.index > 0) body += ',';
    responder_->append_choice(body, choice, choice.whole, /*delta=*/false);
  }
  body += ']';
  responder_->append_extras(body, choices_.front(), /*first=*/true);
  body += ",\"usage\":";
  append_usage(body, total_usage());
  body += '}';
  exchange_->reply({.body = std::move(body)});
}

void GenerationCall::fail(const ApiError& error) {
  if (exchange_ == nullptr) return;
  const std::shared_ptr<Exchange> exchange = exchange_;
  release();
  if (streaming_) {
    exchange->end_stream(error_event(error), /*close=*/true);
  } else {
    exchange->reply(to_reply(error));
  }
}

void GenerationCall::on_gone() {
  release();
}

void GenerationCall::on_shutdown() {
  fail(overloaded("The server is shutting down: the request was not finished."));
}

void GenerationCall::release() {
  exchange_ = nullptr;
  for (const Choice& choice : choices_) {
    if (choice.submitted && !choice.finished) context_->service.cancel(choice.id);
  }
}

std::string GenerationCall::opening(bool delta) const {
  std::string out = "{\"id\":\"" + id_ + "\",\"object\":\"";
  out += responder_->object(delta);
  out += "\",\"created\":" + std::to_string(created_s_) + ",\"model\":";
  append_json_string(out, prepared_.model->name);
  out += ",\"system_fingerprint\":";
  append_json_string(out, "fp_" + prepared_.model->digest.substr(0, 12));
  return out;
}

/// A prompt counts once, however many choices it has.
Usage GenerationCall::total_usage() const {
  Usage total;
  for (const Choice& choice : choices_) {
    total.completion_tokens += choice.whole.usage.completion_tokens;
    if (choice.index % prepared_.answer.n != 0) continue;
    total.prompt_tokens += choice.whole.usage.prompt_tokens;
    total.cached_tokens += choice.whole.usage.cached_tokens;
  }
  return total;
}

}  // namespace brigade::router
