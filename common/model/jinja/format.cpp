// SPDX-License-Identifier: Apache-2.0
#include "common/model/jinja/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "common/model/jinja/callable.h"
#include "common/model/jinja/operators.h"
#include "common/model/utf8.h"

namespace brigade::model::jinja {
namespace {

std::string hex_escape(char prefix, unsigned code, int digits) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "\\%c%0*x", prefix, digits, code);
  return buffer;
}

/// Walks a value and appends what str() or repr() gives.
class Printer final {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  void print(const Value& value) {
    if (value.is_undefined()) return;
    if (const Text* text = value.text()) {
      budget_.bytes(text->size());
      out.append(*text);
    } else {
      repr(value);
    }
  }

  void repr(const Value& value) {
    budget_.step();
    budget_.bytes(16);
    if (value.is_undefined()) {
      put("Undefined");
    } else if (value.is_none()) {
      put("None");
    } else if (value.is_bool()) {
      put(value.truthy() ? "True" : "False");
    } else if (value.is_integer()) {
      put(std::to_string(value.integer()));
    } else if (value.is_float()) {
      put(float_repr(value.number()));
    } else if (const Text* text = value.text()) {
      repr_text(*text);
    } else if (const Array* array = value.array()) {
      repr_array(*array);
    } else if (const Dict* dict = value.dict()) {
      repr_dict(*dict);
    } else {
      put(str_cat('<', value.type_name(), '>'));
    }
  }

  Text out;

 private:
  void put(std::string_view text) { out.append(text, /*trusted=*/true); }

  void repr_array(const Array& array) {
    put(array.is_tuple ? "(" : "[");
    for (std::size_t i = 0; i < array.items.size(); ++i) {
      if (i > 0) put(", ");
      repr(array.items[i]);
    }
    if (array.is_tuple && array.items.size() == 1) put(",");
    put(array.is_tuple ? ")" : "]");
  }

  void repr_dict(const Dict& dict) {
    put("{");
    for (std::size_t i = 0; i < dict.items.size(); ++i) {
      if (i > 0) put(", ");
      repr(dict.items[i].first);
      put(": ");
      repr(dict.items[i].second);
    }
    put("}");
  }

  void repr_text(const Text& text) {
    budget_.bytes(text.size() * 2);
    const std::string& bytes = text.str();
    const bool doubles =
        bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
    const char quote = doubles ? '"' : '\'';
    put(std::string(1, quote));
    for (std::size_t pos = 0; pos < bytes.size();) {
      const Utf8Step step = utf8_step(bytes, pos);
      const bool trusted = text.trusted_at(pos);
      out.append(escape_repr(std::string_view(bytes).substr(pos, step.length), step, quote),
                 trusted);
      pos += step.length;
    }
    put(std::string(1, quote));
  }

  static std::string escape_repr(std::string_view character, const Utf8Step& step, char quote) {
    const char c = character[0];
    if (c == quote || c == '\\') return std::string("\\") + c;
    if (c == '\n') return "\\n";
    if (c == '\r') return "\\r";
    if (c == '\t') return "\\t";
    const char32_t code = step.code_point;
    const bool control = code < 0x20 || (code >= 0x7f && code <= 0xa0) || code == 0xad;
    if (step.kind == Utf8Step::Kind::kCharacter && control) {
      return hex_escape('x', static_cast<unsigned>(code), 2);
    }
    return std::string(character);
  }

  Budget& budget_;
};

class JsonWriter final {
 public:
  JsonWriter(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  void write(const Value& value) {
    budget_.step();
    budget_.bytes(16);
    if (value.is_none()) {
      put("null");
    } else if (value.is_bool()) {
      put(value.truthy() ? "true" : "false");
    } else if (value.is_integer()) {
      put(std::to_string(value.integer()));
    } else if (value.is_float()) {
      put(json_float(value.number()));
    } else if (const Text* text = value.text()) {
      write_text(*text);
    } else if (const Array* array = value.array()) {
      write_array(*array);
    } else if (const Dict* dict = value.dict()) {
      write_dict(*dict);
    } else {
      fail(str_cat("Object of type ", value.type_name(), " is not JSON serializable"));
    }
  }

  Text out;

 private:
  void put(std::string_view text) { out.append(text, /*trusted=*/true); }

  static std::string json_float(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return float_repr(value);
  }

  void break_line() {
    if (!style_.indent) return;
    const auto width = static_cast<std::size_t>(std::max<std::int64_t>(0, *style_.indent));
    const std::size_t spaces = width * level_;
    budget_.bytes(spaces + 1);
    put('\n' + std::string(spaces, ' '));
  }

  void separate(std::size_t index) {
    if (index > 0) put(style_.item_separator);
    break_line();
  }

  void write_array(const Array& array) {
    if (array.items.empty()) return put("[]");
    put("[");
    ++level_;
    for (std::size_t i = 0; i < array.items.size(); ++i) {
      separate(i);
      write(array.items[i]);
    }
    --level_;
    break_line();
    put("]");
  }

  void write_dict(const Dict& dict) {
    if (dict.items.empty()) return put("{}");
    std::vector<const std::pair<Value, Value>*> items;
    for (const auto& item : dict.items)
      items.push_back(&item);
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(), [this](const auto* a, const auto* b) {
        return less(budget_, a->first, b->first);
      });
    }
    put("{");
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      separate(i);
      write_key(items[i]->first);
      put(style_.key_separator);
      write(items[i]->second);
    }
    --level_;
    break_line();
    put("}");
  }

  void write_key(const Value& key) {
    if (key.text() != nullptr) return write(key);
    if (!key.is_none() && !key.is_number()) {
      fail(str_cat("keys must be str, int, float, bool or None, not ", key.type_name()));
    }
    put("\"");
    write(key);
    put("\"");
  }

  void write_text(const Text& text) {
    budget_.bytes(text.size() * 2);
    const std::string& bytes = text.str();
    put("\"");
    for (std::size_t pos = 0; pos < bytes.size();) {
      const Utf8Step step = utf8_step(bytes, pos);
      out.append(escape_json(std::string_view(bytes).substr(pos, step.length), step),
                 text.trusted_at(pos));
      pos += step.length;
    }
    put("\"");
  }

  [[nodiscard]] std::string escape_json(std::string_view character, const Utf8Step& step) const {
    switch (character[0]) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\b':
        return "\\b";
      case '\f':
        return "\\f";
      default:
        break;
    }
    const auto code = static_cast<unsigned>(step.code_point);
    if (step.kind != Utf8Step::Kind::kCharacter) return std::string(character);
    if (code < 0x20) return hex_escape('u', code, 4);
    if (code < 0x7f || !style_.ensure_ascii) return std::string(character);
    if (code == 0x7f) return std::string(character);
    if (code < 0x10000) return hex_escape('u', code, 4);
    return hex_escape('u', 0xd7c0 + (code >> 10), 4) + hex_escape('u', 0xdc00 + (code & 0x3ff), 4);
  }

  Budget& budget_;
  const JsonStyle& style_;
  std::size_t level_ = 0;
};

}  // namespace

Text to_text(Budget& budget, const Value& value) {
  Printer printer(budget);
  printer.print(value);
  return std::move(printer.out);
}

Text to_repr(Budget& budget, const Value& value) {
  Printer printer(budget);
  printer.repr(value);
  return std::move(printer.out);
}

Text to_json(Budget& budget, const Value& value, const JsonStyle& style) {
  JsonWriter writer(budget, style);
  writer.write(value);
  return std::move(writer.out);
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto scientific =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string text(buffer, scientific.ptr);
  const int exponent = std::stoi(text.substr(text.find('e') + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string out(buffer, fixed.ptr);
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

}  // namespace brigade::model::jinja
