// SPDX-License-Identifier: Apache-2.0
#include "common/wire/controls_codec.h"

#include <utility>

namespace brigade::wire {
namespace {

/// Lists of all owners one after another, and where each owner's ends.
template <typename T>
struct Lists {
  std::vector<std::uint32_t> cu = {0};
  std::vector<T> values;

  void add(const std::vector<T>& list) {
    values.insert(values.end(), list.begin(), list.end());
    cu.push_back(static_cast<std::uint32_t>(values.size()));
  }
};

/// The controls of all sequences that have some, as columns.
class ControlColumns final {
 public:
  void add(std::uint32_t index, const SamplingControls& c) {
    admitted_.push_back(index);
    min_p_.push_back(c.min_p);
    typical_p_.push_back(c.typical_p);
    repetition_.push_back(c.repetition_penalty);
    presence_.push_back(c.presence_penalty);
    frequency_.push_back(c.frequency_penalty);
    for (const TokenBias& bias : c.bias) {
      bias_.values.push_back(bias.token);
      bias_values_.push_back(bias.bias);
    }
    bias_.cu.push_back(static_cast<std::uint32_t>(bias_.values.size()));
    allowed_.add(c.allowed_tokens);
    for (const std::vector<std::int32_t>& word : c.bad_words) {
      word_tokens_.insert(word_tokens_.end(), word.begin(), word.end());
      words_.values.push_back(static_cast<std::uint32_t>(word_tokens_.size()));
    }
    words_.cu.push_back(static_cast<std::uint32_t>(words_.values.size()));
    prompt_.add(c.prompt_tokens);
    output_.add(c.output_tokens);
  }

  [[nodiscard]] Offset<fb::Controls> pack(Builder& b) const {
    if (admitted_.empty()) return 0;
    const auto admitted = pack_vector(b, admitted_);
    const auto min_p = pack_vector(b, min_p_);
    const auto typical_p = pack_vector(b, typical_p_);
    const auto repetition = pack_vector(b, repetition_);
    const auto presence = pack_vector(b, presence_);
    const auto frequency = pack_vector(b, frequency_);
    const auto cu_bias = pack_vector(b, bias_.cu);
    const auto bias_tokens = pack_vector(b, bias_.values);
    const auto bias_values = pack_vector(b, bias_values_);
    const auto cu_allowed = pack_vector(b, allowed_.cu);
    const auto allowed = pack_vector(b, allowed_.values);
    const auto cu_words = pack_vector(b, words_.cu);
    const auto word_ends = pack_vector(b, words_.values);
    const auto word_tokens = pack_vector(b, word_tokens_);
    const auto cu_prompt = pack_vector(b, prompt_.cu);
    const auto prompt = pack_vector(b, prompt_.values);
    const auto cu_output = pack_vector(b, output_.cu);
    const auto output = pack_vector(b, output_.values);
    return fb::CreateControls(b, admitted, min_p, typical_p, repetition, presence, frequency,
                              cu_bias, bias_tokens, bias_values, cu_allowed, allowed, cu_words,
                              word_ends, word_tokens, cu_prompt, prompt, cu_output, output);
  }

 private:
  std::vector<std::uint32_t> admitted_;
  std::vector<float> min_p_, typical_p_, repetition_, presence_, frequency_, bias_values_;
  Lists<std::int32_t> bias_, allowed_, prompt_, output_;
  Lists<std::uint32_t> words_;  ///< values: ends in word_tokens_
  std::vector<std::int32_t> word_tokens_;
};

/// List i of `values`, by `cu`.
std::vector<std::int32_t> list_of(const std::vector<std::int32_t>& values,
                                  const std::vector<std::uint32_t>& cu, std::size_t i) {
  return {values.begin() + cu[i], values.begin() + cu[i + 1]};
}

/// Each sequence's bad words: their ends are where they end in `tokens`, over all sequences.
void unpack_bad_words(const fb::Controls& m, std::vector<SamplingControls>& out, Fields& f) {
  const auto cu = f.vector(m.cu_bad_words());
  const auto ends = f.vector(m.bad_word_ends());
  const auto tokens = f.vector(m.bad_word_tokens());
  f.intervals(cu, out.size(), ends.size(), "controls.cu_bad_words");
  std::uint32_t begin = 0;
  for (const std::uint32_t end : ends) {
    if (end <= begin || end > tokens.size()) f.fault("controls.bad_word_ends", "do not rise");
    begin = end;
  }
  if (begin != tokens.size()) f.fault("controls.bad_word_ends", "end before their tokens");
  if (!f.ok()) return;
  begin = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::uint32_t word = cu[i]; word < cu[i + 1]; ++word) {
      out[i].bad_words.emplace_back(tokens.begin() + begin, tokens.begin() + ends[word]);
      begin = ends[word];
    }
  }
}

void unpack_control_lists(const fb::Controls& m, std::vector<SamplingControls>& out, Fields& f) {
  const std::size_t n = out.size();
  const auto cu_bias = f.vector(m.cu_bias());
  const auto bias_tokens = f.vector(m.bias_tokens());
  const auto bias_values = f.vector(m.bias_values());
  const auto cu_allowed = f.vector(m.cu_allowed());
  const auto allowed = f.vector(m.allowed_tokens());
  const auto cu_prompt = f.vector(m.cu_prompt());
  const auto prompt = f.vector(m.prompt_tokens());
  const auto cu_output = f.vector(m.cu_output());
  const auto output = f.vector(m.output_tokens());
  f.length(bias_values.size(), bias_tokens.size(), "controls.bias_values");
  f.intervals(cu_bias, n, bias_tokens.size(), "controls.cu_bias");
  f.intervals(cu_allowed, n, allowed.size(), "controls.cu_allowed");
  f.intervals(cu_prompt, n, prompt.size(), "controls.cu_prompt");
  f.intervals(cu_output, n, output.size(), "controls.cu_output");
  for (std::size_t i = 0; i < n && f.ok(); ++i) {
    for (std::uint32_t k = cu_bias[i]; k < cu_bias[i + 1]; ++k) {
      out[i].bias.push_back(
          {.token = bias_tokens[k], .bias = f.finite(bias_values[k], "controls.bias_values")});
    }
    out[i].allowed_tokens = list_of(allowed, cu_allowed, i);
    out[i].prompt_tokens = list_of(prompt, cu_prompt, i);
    out[i].output_tokens = list_of(output, cu_output, i);
  }
}

}  // namespace

Offset<fb::Controls> pack_controls(Builder& b, const std::vector<SequenceAdmit>& admit) {
  ControlColumns columns;
  for (std::size_t i = 0; i < admit.size(); ++i) {
    if (admit[i].controls == nullptr) continue;
    columns.add(static_cast<std::uint32_t>(i), *admit[i].controls);
  }
  return columns.pack(b);
}

void unpack_controls(const fb::Controls* m, std::vector<SequenceAdmit>& admit, Fields& f) {
  if (m == nullptr) return;
  const auto admitted = f.vector(m->admitted());
  const auto min_p = f.vector(m->min_p());
  const auto typical_p = f.vector(m->typical_p());
  const auto repetition = f.vector(m->repetition_penalty());
  const auto presence = f.vector(m->presence_penalty());
  const auto frequency = f.vector(m->frequency_penalty());
  const std::size_t n = admitted.size();
  if (n > admit.size()) f.fault("controls.admitted", "are more than were admitted");
  for (const auto* column : {&min_p, &typical_p, &repetition, &presence, &frequency})
    f.length(column->size(), n, "controls' numbers");
  if (!f.ok()) return;
  std::vector<SamplingControls> controls(n);
  for (std::size_t i = 0; i < n; ++i) {
    controls[i].min_p = f.finite(min_p[i], "controls.min_p");
    controls[i].typical_p = f.finite(typical_p[i], "controls.typical_p");
    controls[i].repetition_penalty = f.finite(repetition[i], "controls.repetition_penalty");
    controls[i].presence_penalty = f.finite(presence[i], "controls.presence_penalty");
    controls[i].frequency_penalty = f.finite(frequency[i], "controls.frequency_penalty");
  }
  unpack_control_lists(*m, controls, f);
  unpack_bad_words(*m, controls, f);
  for (std::size_t i = 0; i < n && f.ok(); ++i) {
    if (admitted[i] >= admit.size() || admit[admitted[i]].controls != nullptr) {
      return f.fault("controls.admitted", "names no sequence, or one twice");
    }
    admit[admitted[i]].controls = std::make_shared<SamplingControls>(std::move(controls[i]));
  }
}

}  // namespace brigade::wire
