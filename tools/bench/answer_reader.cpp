// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/answer_reader.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <memory>

namespace brigade::tools {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxKind = 60;

const json::value* find(const json::value* value, std::string_view name) {
  const json::object* object = value == nullptr ? nullptr : value->if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::uint64_t number_of(const json::value* value) {
  if (value == nullptr) return 0;
  boost::system::error_code error;
  const auto number = value->to_number<std::int64_t>(error);
  return error || number < 0 ? 0 : static_cast<std::uint64_t>(number);
}

std::string kind_of(const json::value* error) {
  for (const char* name : {"code", "type"}) {
    const json::value* found = find(error, name);
    if (found == nullptr) continue;
    if (const json::string* text = found->if_string(); text != nullptr && !text->empty()) {
      return {text->data(), std::min(text->size(), kMaxKind)};
    }
    if (found->is_int64()) return std::to_string(found->as_int64());
  }
  return "error";
}

bool has_text(const json::value& choice) {
  const json::value* delta = find(&choice, "delta");
  const json::value* text = delta != nullptr ? find(delta, "content") : find(&choice, "text");
  return text != nullptr && text->is_string() && !text->as_string().empty();
}

std::uint64_t tokens_of(const json::array& choices) {
  std::uint64_t count = 0;
  for (const json::value& choice : choices) {
    const json::value* ids = find(&choice, "token_ids");
    if (ids != nullptr && ids->is_array()) {
      count += ids->as_array().size();
    } else if (has_text(choice)) {
      ++count;
    }
  }
  return count;
}

}  // namespace

void AnswerReader::push(std::string_view bytes, const OnTokens& on_tokens) {
  const Status status =
      events_.push(bytes, [&](const SseEvent& event) { on_event(event, on_tokens); });
  if (!status.ok() && error_.empty()) error_ = "an event is too large";
}

void AnswerReader::on_event(const SseEvent& event, const OnTokens& on_tokens) {
  if (done_ || !error_.empty()) return;
  if (event.data == "[DONE]") {
    done_ = true;
    return;
  }
  std::array<unsigned char, 4096> memory;  // most events fit: no allocation for them
  json::monotonic_resource resource(memory.data(), memory.size());
  boost::system::error_code failed;
  const json::value chunk = json::parse(event.data, failed, &resource);
  if (failed) {
    error_ = "an event is no JSON";
    return;
  }
  if (const json::value* error = find(&chunk, "error"); error != nullptr && !error->is_null()) {
    error_ = kind_of(error);
    return;
  }
  if (event.event == "error") {
    error_ = "error";
    return;
  }
  std::uint64_t total = output_tokens_;
  if (const json::value* choices = find(&chunk, "choices"); choices && choices->is_array()) {
    total += tokens_of(choices->as_array());
    for (const json::value& choice : choices->as_array()) {
      const json::value* reason = find(&choice, "finish_reason");
      finished_ = finished_ || (reason != nullptr && reason->is_string());
    }
  }
  if (const json::value* usage = find(&chunk, "usage"); usage && usage->is_object()) {
    total = std::max(output_tokens_, number_of(find(usage, "completion_tokens")));
    prompt_tokens_ = std::max(prompt_tokens_, number_of(find(usage, "prompt_tokens")));
    const json::value* details = find(usage, "prompt_tokens_details");
    cached_tokens_ = std::max(cached_tokens_, number_of(find(details, "cached_tokens")));
  }
  const std::uint64_t added = total - output_tokens_;
  output_tokens_ = total;
  if (added > 0) on_tokens(static_cast<std::uint32_t>(added));
}

std::string error_kind(std::string_view body) {
  boost::system::error_code failed;
  const json::value value = json::parse(json::string_view(body.data(), body.size()), failed);
  return kind_of(failed ? nullptr : find(&value, "error"));
}

}  // namespace brigade::tools
