// SPDX-License-Identifier: Apache-2.0
#include "router/api/http/json.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse_options.hpp>
#include <optional>

#include "common/base/strings.h"

namespace brigade::router {
namespace {

namespace json = boost::json;

/// Builds the value from the parser's events. Boost's own DOM would let the last of two equal keys
/// win, and two readers of one text could then see different values.
class Builder {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_array_begin(json::error_code& ec) { return open(JsonValue{JsonValue::Array{}}, ec); }
  bool on_array_end(std::size_t, json::error_code& ec) { return close(ec); }
  bool on_object_begin(json::error_code& ec) { return open(JsonValue{JsonValue::Object{}}, ec); }
  bool on_object_end(std::size_t, json::error_code& ec) {
    return check_keys(*std::get_if<JsonValue::Object>(&stack_.back().value.data), ec) && close(ec);
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& ec) {
    text_.append(part.data(), part.size());
    return add(JsonValue{std::exchange(text_, {})}, ec);
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& ec) {
    text_.append(part.data(), part.size());
    if (++num_keys_ > limits_.max_keys) {
      return fail(str_cat("more than ", limits_.max_keys, " members"), ec);
    }
    stack_.back().key = std::exchange(text_, {});
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code& ec) {
    return add(JsonValue{value}, ec);
  }
  bool on_uint64(std::uint64_t value, json::string_view, json::error_code& ec) {
    return add(JsonValue{value}, ec);
  }
  bool on_double(double value, json::string_view, json::error_code& ec) {
    return add(JsonValue{value}, ec);
  }
  bool on_bool(bool value, json::error_code& ec) { return add(JsonValue{value}, ec); }
  bool on_null(json::error_code& ec) { return add(JsonValue{nullptr}, ec); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

  [[nodiscard]] const std::string& failure() const { return failure_; }
  JsonValue take() { return std::move(root_); }

 private:
  struct Open {
    JsonValue value;
    std::string key;
  };

  bool fail(std::string why, json::error_code& ec) {
    failure_ = std::move(why);
    ec = json::error::exception;
    return false;
  }

  bool count(json::error_code& ec) {
    if (++num_values_ <= limits_.max_values) return true;
    return fail(str_cat("more than ", limits_.max_values, " values"), ec);
  }

  bool open(JsonValue value, json::error_code& ec) {
    if (!count(ec)) return false;
    stack_.push_back({std::move(value), {}});
    return true;
  }

  bool close(json::error_code&) {
    JsonValue value = std::move(stack_.back().value);
    stack_.pop_back();
    place(std::move(value));
    return true;
  }

  bool add(JsonValue value, json::error_code& ec) {
    if (!count(ec)) return false;
    place(std::move(value));
    return true;
  }

  void place(JsonValue value) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = std::get_if<JsonValue::Array>(&stack_.back().value.data)) {
      array->push_back(std::move(value));
    } else {
      auto* object = std::get_if<JsonValue::Object>(&stack_.back().value.data);
      object->push_back({std::move(stack_.back().key), std::move(value)});
    }
  }

  bool check_keys(const JsonValue::Object& object, json::error_code& ec) {
    std::vector<std::string_view> keys;
    keys.reserve(object.size());
    for (const JsonMember& member : object)
      keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice == keys.end()) return true;
    return fail(str_cat("the key ", quoted(*twice), " twice in one object"), ec);
  }

  JsonLimits limits_;
  JsonValue root_;
  std::vector<Open> stack_;
  std::string text_;
  std::string failure_;
  std::size_t num_values_ = 0;
  std::size_t num_keys_ = 0;
};

/// Our own words where the builder stopped the parser, else Boost's.
std::string reason(const Builder& builder, const json::error_code& ec) {
  return builder.failure().empty() ? ec.message() : builder.failure();
}

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  const Object* object = as_object();
  if (object == nullptr) return nullptr;
  for (const JsonMember& member : *object) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Result<JsonValue> parse_json(std::string_view text, const JsonLimits& limits) {
  json::parse_options options;
  options.max_depth = limits.max_depth;
  json::basic_parser<Builder> parser(options, limits);
  json::error_code ec;
  const std::size_t used = parser.write_some(/*more=*/false, text.data(), text.size(), ec);
  if (!ec && used < text.size()) ec = json::error::extra_data;
  if (ec) {
    return invalid_argument(
        str_cat("the body is not valid JSON: ", reason(parser.handler(), ec), " at byte ", used));
  }
  return parser.handler().take();
}

std::string describe(const JsonValue& value) {
  struct Visitor {
    std::string operator()(std::nullptr_t) const { return "null"; }
    std::string operator()(bool v) const { return v ? "true" : "false"; }
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(std::uint64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return str_cat(v); }
    std::string operator()(const std::string& v) const { return quoted(v, 60); }
    std::string operator()(const JsonValue::Array& v) const {
      return str_cat("an array of ", v.size());
    }
    std::string operator()(const JsonValue::Object& v) const {
      return str_cat("an object of ", v.size());
    }
  };
  return std::visit(Visitor{}, value.data);
}

}  // namespace brigade::router
