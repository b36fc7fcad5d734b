// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "common/wire/client.h"
#include "common/wire/messages.h"
#include "common/wire/stage_link.h"

/// Every field of a message as text, to compare messages whose floats may be NaN. Structured
/// bindings name all members: a new one does not compile until it is added here.
namespace brigade::wire {

template <typename T>
requires std::is_arithmetic_v<T> std::string dump(T value) {
  std::ostringstream out;
  out.precision(17);
  out << +value << ' ';
  return out.str();
}
template <typename T>
requires std::is_enum_v<T> std::string dump(T value) {
  return dump(static_cast<std::uint32_t>(value));
}
inline std::string dump(const std::string& text) {
  return "'" + text + "' ";
}
inline std::string dump(const Status& s) {
  return dump(s.code()) + dump(s.message());
}

template <typename T>
std::string dump(const std::vector<T>& values);
template <typename T>
std::string dump(const std::optional<T>& value);
template <typename... T>
std::string dump(const std::variant<T...>& value);
template <typename T>
std::string dump(const std::shared_ptr<const T>& value);

#define BRIGADE_DUMP(type, ...)               \
  inline std::string dump(const type& m) {    \
    const auto& [__VA_ARGS__] = m;            \
    return "{" + dump_all(__VA_ARGS__) + "}"; \
  }

template <typename... T>
std::string dump_all(const T&... values);

BRIGADE_DUMP(Range, a, b)
BRIGADE_DUMP(SimCost, a, b, c, d, e)
BRIGADE_DUMP(StageInfo, a, b, c, d, e)
BRIGADE_DUMP(TokenBias, a, b)
BRIGADE_DUMP(SamplingControls, a, b, c, d, e, f, g, h, i, j)
BRIGADE_DUMP(SequenceAdmit, a, b, c, d, e, f, g, h, i, j)
BRIGADE_DUMP(Hello, a, b, c, d, e, f, g, h, i, j, k, l)
BRIGADE_DUMP(LoadProgress, a, b)
BRIGADE_DUMP(Loaded, a, b, c)
BRIGADE_DUMP(Ready, a)
BRIGADE_DUMP(Failed, a, b)
BRIGADE_DUMP(Heartbeat, a, b, c, d)
BRIGADE_DUMP(Goodbye, a)
BRIGADE_DUMP(StepResult, a, b, c, d, e, f, g, h, i, j, k, l, n, o)
BRIGADE_DUMP(StageTimes, a, b, c, d, e)
BRIGADE_DUMP(Assign, a, b, c, d, e, f, g, h, i, j, k, l, n, o, p)
BRIGADE_DUMP(Start, a, b)
BRIGADE_DUMP(Abort, a, b)
BRIGADE_DUMP(Release, a)
BRIGADE_DUMP(HeartbeatAck, a, b)
BRIGADE_DUMP(StepCommand, a, b, c, d, e, f, g, h, i, j, k, l, n, o, p)
BRIGADE_DUMP(ActivationHeader, a, b, c, d, e, f, g, h, i)
BRIGADE_DUMP(SampledTokens, a, b, c, d, e, f)
BRIGADE_DUMP(TokenLogprob, a, b)
BRIGADE_DUMP(OutputToken, a, b, c)
BRIGADE_DUMP(GenerationParams, a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s, t, u, v, w, x)
BRIGADE_DUMP(PromptMessage, a, b)
BRIGADE_DUMP(TextPrompt, a, b)
BRIGADE_DUMP(TokenPrompt, a)
BRIGADE_DUMP(ChatPrompt, a)
BRIGADE_DUMP(Generate, a, b, c, d, e)
BRIGADE_DUMP(Cancel, a)
BRIGADE_DUMP(ListModels, a)
BRIGADE_DUMP(GetStatus, a)
BRIGADE_DUMP(Drain, a, b)
BRIGADE_DUMP(Accepted, a)
BRIGADE_DUMP(Chunk, a, b, c, d, e)
BRIGADE_DUMP(Finished, a, b, c, d, e, f)
BRIGADE_DUMP(Refused, a, b, c, d)
BRIGADE_DUMP(ModelInfo, a, b, c)
BRIGADE_DUMP(Models, a, b)
BRIGADE_DUMP(StatusReply, a, b)
BRIGADE_DUMP(Done, a)
inline std::string dump(const KeepAlive&) {
  return "{}";
}
#undef BRIGADE_DUMP

template <typename T>
std::string dump(const std::vector<T>& values) {
  std::string out = "[";
  for (const T& value : values)
    out += dump(value);
  return out + "]";
}
template <typename T>
std::string dump(const std::optional<T>& value) {
  return value ? "some " + dump(*value) : "none ";
}
template <typename... T>
std::string dump(const std::variant<T...>& value) {
  return std::to_string(value.index()) + ":" +
         std::visit([](const auto& v) { return dump(v); }, value);
}
template <typename T>
std::string dump(const std::shared_ptr<const T>& value) {
  return value != nullptr ? "some " + dump(*value) : "none ";
}
template <typename... T>
std::string dump_all(const T&... values) {
  return (dump(values) + ... + std::string());
}

}  // namespace brigade::wire
