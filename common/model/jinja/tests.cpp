// SPDX-License-Identifier: Apache-2.0
// What may stand after `is`.
#include "common/model/jinja/builtins.h"
#include "common/model/jinja/format.h"
#include "common/model/jinja/operators.h"
#include "common/model/jinja/strings.h"
#include "common/model/jinja/table.h"

namespace brigade::model::jinja {
namespace {

/// A test of the value alone.
template <bool (*test)(const Value& value)>
bool plain(Context&, const Value& value, const Args& args) {
  Bound("the test", args, {});
  return test(value);
}

const Value& operand(const Args& args) {
  if (args.positional.size() != 1 || !args.named.empty()) fail("the test needs one argument");
  return args.positional[0];
}

bool is_callable(const Value& value) {
  return value.callable() != nullptr;
}
bool is_defined(const Value& value) {
  return !value.is_undefined();
}
bool is_false(const Value& value) {
  return value.is_bool() && !value.truthy();
}
bool is_float(const Value& value) {
  return value.is_float();
}
bool is_boolean(const Value& value) {
  return value.is_bool();
}
bool is_integer(const Value& value) {
  return value.is_integer();
}
bool is_iterable(const Value& value) {
  return value.is_undefined() || value.text() != nullptr || value.array() != nullptr ||
         value.dict() != nullptr || value.loop() != nullptr;
}
bool is_mapping(const Value& value) {
  return value.dict() != nullptr;
}
bool is_none(const Value& value) {
  return value.is_none();
}
bool is_number(const Value& value) {
  return value.is_number();
}
bool is_sequence(const Value& value) {
  return value.is_undefined() || value.text() != nullptr || value.array() != nullptr ||
         value.dict() != nullptr;
}
bool is_string(const Value& value) {
  return value.text() != nullptr;
}
bool is_true(const Value& value) {
  return value.is_bool() && value.truthy();
}
bool is_undefined(const Value& value) {
  return value.is_undefined();
}

/// str.islower() and isupper(): there is a letter with case, and none of the other case.
template <CaseRule same, CaseRule other>
bool has_case(Context& context, const Value& value, const Args& args) {
  Bound("the test", args, {});
  const Text text = to_text(context.budget(), value);
  return map_case(context.budget(), text, same).str() == text.str() &&
         map_case(context.budget(), text, other).str() != text.str();
}

bool divisible_by(Context& context, const Value& value, const Args& args) {
  const Value rest = apply(context.budget(), BinaryOp::kMod, value, operand(args));
  return rest.is_number() && rest.number() == 0;
}

template <int parity>
bool has_parity(Context& context, const Value& value, const Args& args) {
  Bound("the test", args, {});
  const Value two(std::int64_t{2});
  const Value rest = apply(context.budget(), BinaryOp::kMod, value, two);
  return rest.is_number() && rest.number() == parity;
}

bool is_equal(Context& context, const Value& value, const Args& args) {
  return equal(context.budget(), value, operand(args));
}
bool is_unequal(Context& context, const Value& value, const Args& args) {
  return !equal(context.budget(), value, operand(args));
}
bool is_less(Context& context, const Value& value, const Args& args) {
  return less(context.budget(), value, operand(args));
}
bool is_greater(Context& context, const Value& value, const Args& args) {
  return less(context.budget(), operand(args), value);
}
bool is_at_most(Context& context, const Value& value, const Args& args) {
  return is_less(context, value, args) || is_equal(context, value, args);
}
bool is_at_least(Context& context, const Value& value, const Args& args) {
  return is_greater(context, value, args) || is_equal(context, value, args);
}
bool is_in(Context& context, const Value& value, const Args& args) {
  return contains(context.budget(), operand(args), value);
}

/// Identity. Strings have none here: equal ones are the same.
bool is_same(Context& context, const Value& value, const Args& args) {
  const Value& other = operand(args);
  if (value.array() != nullptr) return value.array() == other.array();
  if (value.dict() != nullptr) return value.dict() == other.dict();
  return value.data().index() == other.data().index() && equal(context.budget(), value, other);
}

const std::string& name_of(const Value& value) {
  if (value.text() == nullptr) fail("the test needs a name");
  return value.text()->str();
}
bool is_filter(Context&, const Value& value, const Args& args) {
  Bound("the test", args, {});
  return find_filter(name_of(value)) != nullptr;
}
bool is_test(Context&, const Value& value, const Args& args) {
  Bound("the test", args, {});
  return find_test(name_of(value)) != nullptr;
}

constexpr Entry<Test> kTests[] = {
    {"boolean", plain<is_boolean>},
    {"callable", plain<is_callable>},
    {"defined", plain<is_defined>},
    {"divisibleby", divisible_by},
    {"eq", is_equal},
    {"equalto", is_equal},
    {"even", has_parity<0>},
    {"false", plain<is_false>},
    {"filter", is_filter},
    {"float", plain<is_float>},
    {"ge", is_at_least},
    {"greaterthan", is_greater},
    {"gt", is_greater},
    {"in", is_in},
    {"integer", plain<is_integer>},
    {"iterable", plain<is_iterable>},
    {"le", is_at_most},
    {"lessthan", is_less},
    {"lower", has_case<CaseRule::kLower, CaseRule::kUpper>},
    {"lt", is_less},
    {"mapping", plain<is_mapping>},
    {"ne", is_unequal},
    {"none", plain<is_none>},
    {"number", plain<is_number>},
    {"odd", has_parity<1>},
    {"sameas", is_same},
    {"sequence", plain<is_sequence>},
    {"string", plain<is_string>},
    {"test", is_test},
    {"true", plain<is_true>},
    {"undefined", plain<is_undefined>},
    {"upper", has_case<CaseRule::kUpper, CaseRule::kLower>},
};
static_assert(is_sorted_table(kTests));

/// Operators as tests, for select('==', x).
constexpr Entry<Test> kOperatorTests[] = {
    {"!=", is_unequal}, {"<", is_less},    {"<=", is_at_most},
    {"==", is_equal},   {">", is_greater}, {">=", is_at_least},
};
static_assert(is_sorted_table(kOperatorTests));

}  // namespace

Test find_test(std::string_view name) {
  const Test test = find_entry(kTests, name);
  return test != nullptr ? test : find_entry(kOperatorTests, name);
}

}  // namespace brigade::model::jinja
