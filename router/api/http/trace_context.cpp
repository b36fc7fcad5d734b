// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/trace_context.h"

namespace brigade::router {
namespace {

constexpr std::size_t kVersion = 2;
constexpr std::size_t kTraceId = 32;
constexpr std::size_t kParentId = 16;
constexpr std::size_t kFlags = 2;
constexpr std::size_t kSize = kVersion + 1 + kTraceId + 1 + kParentId + 1 + kFlags;

/// Hex digits of the length, and not all of them 0.
bool is_id(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::string_view trace_id_of(std::string_view traceparent) {
  return traceparent.empty() ? "" : traceparent.substr(kVersion + 1, kTraceId);
}

std::string traceparent_of(const RequestHead& head) {
  const std::string* field = head.find("traceparent");
  // Later versions may append to this form.
  if (field == nullptr || field->size() < kSize) return "";
  const std::string_view text = *field;
  const bool first_version = text.starts_with("00");
  if (text.starts_with("ff") || (first_version && text.size() != kSize)) return "";
  if (!first_version && text.size() > kSize && text[kSize] != '-') return "";
  const std::string_view parent = text.substr(kVersion + 1 + kTraceId + 1, kParentId);
  const std::string_view flags = text.substr(kSize - kFlags, kFlags);
  const bool dashes = text[kVersion] == '-' && text[kVersion + 1 + kTraceId] == '-' &&
                      text[kSize - kFlags - 1] == '-';
  const bool hex =
      text.substr(0, kVersion).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
      flags.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  if (!dashes || !hex || !is_id(trace_id_of(text)) || !is_id(parent)) return "";
  return std::string(text.substr(0, kSize));
}

}  // namespace brigade::router
