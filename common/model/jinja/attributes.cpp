// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "common/model/jinja/builtins.h"
#include "common/model/jinja/format.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/strings.h"

namespace brigade::model::jinja {
namespace {

Value bind_method(const Value& object, const std::string& name) {
  const Function method = find_method(object, name);
  if (method == nullptr) return Value::undefined(name);
  return Value(std::make_shared<const Callable>(
      Callable{BoundFunction{name, method, object}, object.depth() + 1}));
}

const Value* find_key(Context& context, const Dict& dict, const Value& key) {
  const auto it = std::find_if(dict.items.begin(), dict.items.end(), [&](const auto& item) {
    return equal(context.budget(), item.first, key);
  });
  return it == dict.items.end() ? nullptr : &it->second;
}

Value loop_attribute(const LoopState& loop, std::string_view name) {
  const auto size = static_cast<std::int64_t>(loop.items.size());
  const auto index0 = static_cast<std::int64_t>(loop.index0);
  // A loop that has ended (and was kept in a namespace) stands on its last item.
  const std::int64_t at = std::min(index0, size - 1);
  if (name == "index") return Value(at + 1);
  if (name == "index0") return Value(at);
  if (name == "revindex") return Value(size - at);
  if (name == "revindex0") return Value(size - at - 1);
  if (name == "first") return Value(at == 0);
  if (name == "last") return Value(at == size - 1);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(std::int64_t{loop.loop_depth});
  if (name == "depth0") return Value(std::int64_t{loop.loop_depth - 1});
  if (name == "previtem" && at > 0) return loop.items[static_cast<std::size_t>(at - 1)];
  if (name == "nextitem" && at + 1 < size) return loop.items[static_cast<std::size_t>(at + 1)];
  return Value::undefined(std::string(name));
}

Value item_at(Context& context, const Value& object, std::int64_t index) {
  const auto normalized = [index](std::size_t size) {
    return index < 0 ? index + static_cast<std::int64_t>(size) : index;
  };
  if (const Array* array = object.array()) {
    const std::int64_t at = normalized(array->items.size());
    if (at >= 0 && at < static_cast<std::int64_t>(array->items.size())) {
      return array->items[static_cast<std::size_t>(at)];
    }
  } else if (const Text* text = object.text()) {
    const std::vector<std::size_t> offsets = character_offsets(context.budget(), text->str());
    const std::int64_t at = normalized(offsets.size() - 1);
    if (at >= 0 && at + 1 < static_cast<std::int64_t>(offsets.size())) {
      const auto i = static_cast<std::size_t>(at);
      return text->slice(offsets[i], offsets[i + 1]);
    }
  }
  return Value::undefined(std::to_string(index));
}

}  // namespace

Value get_item(Context& context, const Value& object, const Value& key) {
  require_defined(object);
  if (const Dict* dict = object.dict()) {
    if (const Value* value = find_key(context, *dict, key)) return *value;
  } else if (key.is_integer() || key.is_bool()) {
    return item_at(context, object, key.integer());
  }
  if (key.text() == nullptr) return Value::undefined(to_text(context.budget(), key).str());
  if (object.name_space() != nullptr || object.loop() != nullptr) {
    return get_attribute(context, object, key.text()->str());
  }
  return bind_method(object, key.text()->str());
}

Value get_attribute(Context& context, const Value& object, const std::string& name) {
  require_defined(object);
  context.budget().step();
  if (const Namespace* name_space = object.name_space()) {
    context.budget().step(name_space->attributes.size() / 4);
    for (const auto& [known, value] : name_space->attributes) {
      if (known == name) return value;
    }
    return Value::undefined(name);
  }
  Value method = bind_method(object, name);
  if (!method.is_undefined()) return method;
  if (const LoopState* loop = object.loop()) return loop_attribute(*loop, name);
  if (const Dict* dict = object.dict()) {
    const Value* value = find_key(context, *dict, Value::string(name, /*trusted=*/true));
    if (value != nullptr) return *value;
  }
  return method;
}

Value get_path(Context& context, const Value& object, const Value& path) {
  if (path.text() == nullptr) return get_item(context, object, path);
  Value value = object;
  for (const Value& part : split(context.budget(), *path.text(),
                                 Value::string(".", /*trusted=*/true).text(), kNoLimit, false)) {
    const std::string& name = part.text()->str();
    std::int64_t index = 0;
    const auto number = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool is_index =
        !name.empty() && number.ec == std::errc() && number.ptr == name.data() + name.size();
    value = get_item(context, value, is_index ? Value(index) : part);
  }
  return value;
}

Text filter_text(Context& context, const Value& value) {
  return to_text(context.budget(), value);
}

Bound::Bound(std::string_view function, const Args& args,
             std::initializer_list<std::string_view> names, std::size_t required)
    : function_(function), values_(names.size(), nullptr) {
  if (args.positional.size() > names.size()) {
    fail(str_cat(function, " takes at most ", names.size(), " arguments, ", args.positional.size(),
                 " given"));
  }
  for (std::size_t i = 0; i < args.positional.size(); ++i)
    values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto* const it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) fail(str_cat(function, " has no argument ", quoted(name)));
    const auto index = static_cast<std::size_t>(it - names.begin());
    if (values_[index] != nullptr) fail(str_cat(function, " got ", quoted(name), " twice"));
    values_[index] = &value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      fail(str_cat(function, " needs the argument ", quoted(names.begin()[i])));
    }
  }
}

std::int64_t Bound::integer(std::size_t index, std::int64_t fallback) const {
  const Value* value = values_[index];
  if (value == nullptr || value->is_none()) return fallback;
  if (!value->is_integer() && !value->is_bool()) {
    fail(str_cat(function_, " needs an integer, not '", value->type_name(), "'"));
  }
  return value->integer();
}

bool Bound::truthy(std::size_t index, bool fallback) const {
  const Value* value = values_[index];
  return value == nullptr ? fallback : value->truthy();
}

const Text* Bound::text(std::size_t index) const {
  const Value* value = values_[index];
  if (value == nullptr || value->is_none()) return nullptr;
  if (value->text() == nullptr) {
    fail(str_cat(function_, " needs a string, not '", value->type_name(), "'"));
  }
  return value->text();
}

const Text& Bound::string(std::size_t index) const {
  const Text* value = text(index);
  if (value == nullptr) fail(str_cat(function_, " needs a string, not None"));
  return *value;
}

}  // namespace brigade::model::jinja
