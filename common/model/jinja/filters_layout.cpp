// SPDX-License-Identifier: Apache-2.0
// Filters that lay out text, and those that cut sequences into groups.
#include <algorithm>

#include "common/model/jinja/filters.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/string_format.h"
#include "common/model/jinja/strings.h"
#include "common/model/jinja/table.h"

namespace brigade::model::jinja {
namespace {

Value attr_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("attr", args, {"name"}, 1);
  const std::string& name = bound.string(0).str();
  // Unlike `.`, it never looks at items.
  return self.dict() != nullptr ? Value::undefined(name) : get_attribute(context, self, name);
}

Value batch_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("batch", args, {"linecount", "fill_with"}, 1);
  const std::int64_t size = bound.integer(0, 1);
  if (size < 1) fail("batch: the number of items in a line must be positive");
  std::vector<Value> lines;
  std::vector<Value> line;
  const auto end_line = [&] { lines.push_back(Value::list(std::exchange(line, {}))); };
  for (Value& item : iterate(context.budget(), self)) {
    if (static_cast<std::int64_t>(line.size()) == size) end_line();
    context.budget().bytes(2 * sizeof(Value));
    line.push_back(std::move(item));
  }
  const bool fills = bound[1] != nullptr && !bound[1]->is_none();
  while (!line.empty() && fills && static_cast<std::int64_t>(line.size()) < size) {
    context.budget().bytes(sizeof(Value));
    line.push_back(*bound[1]);
  }
  if (!line.empty()) end_line();
  return Value::list(std::move(lines));
}

Value center_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("center", args, {"width"});
  return justify(context.budget(), filter_text(context, self), bound.integer(0, 80),
                 Text(" ", true), Justify::kCenter);
}

Value format_filter(Context& context, const Value& self, const Args& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  const Text format = filter_text(context, self);
  if (args.named.empty()) {
    return percent_format(context.budget(), format, Value::tuple(args.positional));
  }
  std::vector<std::pair<Value, Value>> items;
  for (const auto& [name, value] : args.named)
    items.emplace_back(Value::string(name, /*trusted=*/true), value);
  return percent_format(context.budget(), format, Value::dict(std::move(items)));
}

/// Into that many lists, the first ones longer by one where they must be; with `fill_with` the
/// others get it as their last.
Value slice_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("slice", args, {"slices", "fill_with"}, 1);
  const std::int64_t count = bound.integer(0, 1);
  if (count < 1 || count > static_cast<std::int64_t>(kMaxRange)) {
    fail(str_cat("slice: into ", count, " parts, not 1 to ", kMaxRange));
  }
  const std::vector<Value> items = iterate(context.budget(), self);
  const auto size = static_cast<std::int64_t>(items.size());
  context.budget().bytes(static_cast<std::size_t>(count + size) * 2 * sizeof(Value));
  std::vector<Value> slices;
  auto begin = items.begin();
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_longer = i < size % count;
    const auto end = begin + static_cast<std::ptrdiff_t>(size / count + (is_longer ? 1 : 0));
    std::vector<Value> slice(begin, end);
    if (bound[1] != nullptr && !bound[1]->is_none() && !is_longer) slice.push_back(*bound[1]);
    slices.push_back(Value::list(std::move(slice)));
    begin = end;
  }
  return Value::list(std::move(slices));
}

Value truncate_filter(Context& context, const Value& self, const Args& args) {
  const Bound bound("truncate", args, {"length", "killwords", "end", "leeway"});
  const std::int64_t length = bound.integer(0, 255);
  const std::int64_t leeway = bound.integer(3, 5);
  const Text end = bound.text(2) == nullptr ? Text("...", true) : *bound.text(2);
  const auto end_size = static_cast<std::int64_t>(count_characters(end.str()));
  if (length < end_size) fail(str_cat("truncate: expected length >= ", end_size, ", got ", length));
  if (leeway < 0) fail(str_cat("truncate: expected leeway >= 0, got ", leeway));
  const Text text = filter_text(context, self);
  const std::vector<std::size_t> offsets = character_offsets(context.budget(), text.str());
  const auto size = static_cast<std::int64_t>(offsets.size()) - 1;
  if (size <= length || size - length <= leeway) return text;
  context.budget().bytes(text.size() + end.size());
  Text out = text.slice(0, offsets[static_cast<std::size_t>(length - end_size)]);
  const std::size_t space = out.str().rfind(' ');
  if (!bound.truthy(1, false) && space != std::string::npos) out = out.slice(0, space);
  out.append(end);
  return out;
}

Value urlencode_filter(Context& context, const Value& self, const Args& args) {
  Bound("urlencode", args, {});
  const auto quote = [&](const Value& value, bool keep_slash) {
    const Text text = filter_text(context, value);
    context.budget().bytes(text.size() * 3);
    Text out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text.str()[i];
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                         (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' || c == '~' ||
                         (c == '/' && keep_slash);
      if (c == ' ' && !keep_slash) {
        out.append("+", text.trusted_at(i));
        continue;
      }
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      const auto byte = static_cast<unsigned char>(c);
      const char escaped[] = {'%', kDigits[byte >> 4], kDigits[byte & 15]};
      out.append(plain ? std::string_view(&c, 1) : std::string_view(escaped, 3),
                 text.trusted_at(i));
    }
    return out;
  };
  if (self.text() != nullptr || (self.array() == nullptr && self.dict() == nullptr)) {
    return quote(self, /*keep_slash=*/true);
  }
  std::vector<std::pair<Value, Value>> pairs;
  if (self.dict() != nullptr) {
    pairs = self.dict()->items;
  } else {
    for (const Value& pair : self.array()->items) {
      const std::vector<Value> parts = iterate(context.budget(), pair);
      if (parts.size() != 2) fail("urlencode needs pairs");
      pairs.emplace_back(parts[0], parts[1]);
    }
  }
  Text out;
  for (const auto& [key, value] : pairs) {
    if (!out.empty()) out.append("&", /*trusted=*/true);
    out.append(quote(key, /*keep_slash=*/false));
    out.append("=", /*trusted=*/true);
    out.append(quote(value, /*keep_slash=*/false));
  }
  return out;
}

/// Runs of letters, digits and underscores.
Value wordcount_filter(Context& context, const Value& self, const Args& args) {
  Bound("wordcount", args, {});
  const Text text = filter_text(context, self);
  context.budget().bytes(text.size());
  std::int64_t count = 0;
  bool in_word = false;
  for (const char c : text.str()) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_word = (byte >= '0' && byte <= '9') || byte == '_' || byte >= 0x80 ||
                         ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
    count += is_word && !in_word ? 1 : 0;
    in_word = is_word;
  }
  return count;
}

constexpr Entry<Function> kFilters[] = {
    {"attr", attr_filter},           {"batch", batch_filter},         {"center", center_filter},
    {"format", format_filter},       {"slice", slice_filter},         {"truncate", truncate_filter},
    {"urlencode", urlencode_filter}, {"wordcount", wordcount_filter},
};
static_assert(is_sorted_table(kFilters));

}  // namespace

Function find_layout_filter(std::string_view name) {
  return find_entry(kFilters, name);
}

}  // namespace brigade::model::jinja
