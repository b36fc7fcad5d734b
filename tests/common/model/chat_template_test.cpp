// SPDX-License-Identifier: Apache-2.0
#include "common/model/chat_template.h"

#include <doctest/doctest.h>

#include "tests/common/model/json_values.h"

namespace brigade::model {
namespace {

using jinja::Value;

Result<std::vector<PromptSegment>> render(std::string_view source,
                                          const ChatTemplateInput& input = {}) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return parsed.status();
  return (*parsed)->render(input);
}

/// The prompt with untrusted text in square brackets.
std::string marked(std::string_view source, const ChatTemplateInput& input) {
  const auto segments = render(source, input);
  if (!segments.ok()) return "error: " + segments.status().message();
  std::string out;
  for (const PromptSegment& segment : *segments) {
    out += segment.trusted ? segment.text : "[" + segment.text + "]";
  }
  return out;
}

ChatTemplateInput one_message(std::string content) {
  ChatTemplateInput input;
  input.messages.push_back({"user", std::move(content)});
  return input;
}

TEST_CASE("text of messages stays untrusted through every string operation") {
  const ChatTemplateInput input = one_message(" a<|im_end|>,B ");
  const auto with = [&](std::string_view expression) {
    return marked("{% set c = messages[0].content %}{{ " + std::string(expression) + " }}", input);
  };
  CHECK(with("'<' ~ c ~ '>'") == "<[ a<|im_end|>,B ]>");
  CHECK(with("'<' + c.strip() + '>'") == "<[a<|im_end|>,B]>");
  CHECK(with("c | trim | upper") == "[A<|IM_END|>,B]");
  CHECK(with("c[1:3] ~ '|'") == "[a<]|");
  CHECK(with("c.replace(',', '+')") == "[ a<|im_end|>]+[B ]");
  CHECK(with("'x,y'.replace(',', c)") == "x[ a<|im_end|>,B ]y");
  CHECK(with("c.split(',') | join('-')") == "[ a<|im_end|>]-[B ]");
  CHECK(with("c | tojson") == "\"[ a<|im_end|>,B ]\"");
  CHECK(with("[c]") == "['[ a<|im_end|>,B ]']");
  CHECK(with("c | reverse") == "[ B,>|dne_mi|<a ]");
  CHECK(with("c * 2 ~ 1") == "[ a<|im_end|>,B  a<|im_end|>,B ]1");
  CHECK(with("c | indent(2, true)") == "  [ a<|im_end|>,B ]");
  CHECK(with("messages[0].role ~ ':'") == "[user]:");
  CHECK(with("'%s' ~ (c | list | first)") == "%s[ ]");
  CHECK(with("'<%s>' % c") == "<[ a<|im_end|>,B ]>");
  CHECK(with("'%-18s|%.3s' % (c, c)") == "[ a<|im_end|>,B ]   |[ a<]");
  CHECK(with("c % ()") == "[ a<|im_end|>,B ]");
  CHECK(with("c.center(19)") == "  [ a<|im_end|>,B ]  ");
  CHECK(with("c.partition(',')[2] ~ c.swapcase()") == "[B  A<|IM_END|>,b ]");
  CHECK(with("c | truncate(8, true, leeway=0)") == "[ a<|i]...");
  CHECK(with("c | urlencode") == "[%20a%3C%7Cim_end%7C%3E%2CB%20]");
  CHECK(with("c | batch(4) | first | join") == "[ a<|]");
  CHECK(marked("{% macro m(x) %}({{ x }}){% endmacro %}{{ m(messages[0].content) }}", input) ==
        "([ a<|im_end|>,B ])");
  CHECK(marked("{% set b %}<{{ messages[0].content }}>{% endset %}{{ b }}", input) ==
        "<[ a<|im_end|>,B ]>");
  CHECK(marked("{% filter lower %}<{{ messages[0].content }}>{% endfilter %}", input) ==
        "<[ a<|im_end|>,b ]>");
}

TEST_CASE("keys of dicts that a request brings are untrusted when it says so") {
  ChatTemplateInput input;
  input.globals.emplace_back(
      "d", Value::dict({{Value::string("<|k|>", false), Value::string("v", false)}}));
  CHECK(marked("{{ d | tojson }}{% for k, v in d.items() %}{{ k ~ '=' ~ v }}{% endfor %}", input) ==
        "{\"[<|k|>]\": \"[v]\"}[<|k|>]=[v]");
}

TEST_CASE("globals replace the variables of the same name") {
  ChatTemplateInput input = one_message("x");
  input.globals.emplace_back("messages", Value::list({}));
  input.globals.emplace_back("enable_thinking", Value(true));
  CHECK(marked("{{ messages | length }}{{ enable_thinking }}", input) == "0True");
}

TEST_CASE("raise_exception gives the template's own words") {
  const auto result = render("{{ raise_exception('roles must alternate') }}");
  CHECK(result.status().code() == StatusCode::kInvalidArgument);
  CHECK(result.status().message() == "roles must alternate");
}

TEST_CASE("a syntax error names the line and what was expected") {
  const auto message = [](std::string_view source) {
    const auto parsed = ChatTemplate::parse(source);
    return parsed.ok() ? "parsed" : parsed.status().message();
  };
  CHECK(message("a\nb\n{{ 1 + }}") == "chat template, line 3: expected an expression, got '}}'");
  CHECK(message("{% if a %}\n\n") ==
        "chat template, line 2: expected {% elif %} or {% else %} or {% endif %}, got the end of "
        "the template");
  CHECK(message("{% nope %}") == "chat template, line 1: unknown tag \"nope\"");
  CHECK(message("x\n{# y") == "chat template, line 2: the comment does not end: expected #}");
  CHECK(message("{{ a[ }}") == "chat template, line 1: unexpected '}'");
  CHECK(message("{% for x y %}") == "chat template, line 1: expected 'in', got \"y\"");
}

TEST_CASE("a name that cannot be known before is an error when it is reached") {
  CHECK(render("{% if false %}{{ 1 | nope }}{% endif %}ok").ok());
  CHECK(render("{{ 1 | nope }}").status().message() ==
        "chat template, line 1: unknown filter \"nope\"");
  CHECK(render("\n{{ nope.x }}").status().message() ==
        "chat template, line 2: \"nope\" is undefined");
}

TEST_CASE("an error in a rendering names the line, also after a macro from elsewhere has run") {
  CHECK(render("{% macro m() %}\n\nx{% endmacro %}\n\n{{ m() ~ (m() + 1) }}").status().message() ==
        "chat template, line 5: unsupported operand type(s) for +: 'str' and 'int'");
  CHECK(render("{% for i in [1] %}\n{{ i.a.b }}\n{% endfor %}").status().message() ==
        "chat template, line 2: \"a\" is undefined");
}

TEST_CASE("a template that would read another one is refused") {
  for (const std::string name : {"include", "import", "from", "extends", "block"}) {
    CHECK(ChatTemplate::parse("x\n{% " + name + " 'a' %}").status().message() ==
          "chat template, line 2: {% " + name +
              " %} is refused: a chat template reads no other template");
  }
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i)
    out += text;
  return out;
}

/// Each must end in kResourceExhausted, soon.
TEST_CASE("a hostile template runs into a bound") {
  const std::string hostile[] = {
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{{ range(1000000000) }}",
      "{{ 'a' * 1000000000 }}",
      "{{ 'aaaaaaaa' * 9223372036854775807 }}",
      "{{ [1, 2, 3] * 1000000000 }}",
      "{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% "
      "endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% "
      "endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(x) %}{% if x %}{{ m(x[:-1]) }}{{ m(x[:-1]) }}{% endif %}{% endmacro %}{{ m('a' * "
      "60) }}",
      "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}",
      "{% set ns = namespace(x={}) %}{% for i in range(9999) %}{% set ns.x = dict(a=ns.x) %}{% "
      "endfor %}",
      "{% set ns = namespace(x=1) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}{% endfor "
      "%}{{ ns.x }}",
      "{% set ns = namespace(x=1, y=1) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}{% "
      "set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
      "{% set ns = namespace(x=1) %}{% for i in range(50) %}{% set ns.x = [ns.x, ns.x] %}{% endfor "
      "%}{{ ns.x | tojson }}",
      "{% set ns = namespace(x=1) %}{% for i in range(9999) %}{% for x in [1] %}{% set ns.x = "
      "[loop, ns.x] %}{% endfor %}{% endfor %}",
      "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{{ s | upper | length }}{% endfor %}",
      "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% if 'b' in s %}{% endif %}{% endfor "
      "%}",
      "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% if s == s ~ '' %}{% endif %}{% "
      "endfor %}",
      "{% set s = 'a' * 1000000 %}{{ s.rsplit('a' * 500000 ~ 'b') }}",
      "{% set s = 'ab' * 500000 %}{{ s.replace('a', 'x' * 10000) }}",
      "{% set s = 'a' * 1000000 %}{{ s | trim('b' * 1000000) }}",
      "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
      "{{ 'x' | map('map'" + repeated(", 'map'", 5000) + ") }}",
      "{{ [1] | tojson(indent=1000000000) }}",
      "{{ 'a' | indent(1000000000) }}",
      "{{ 'a'.center(1000000000) }}",
      "{{ '7'.zfill(9223372036854775807) }}",
      "{% for i in range(99999) %}{{ '%9999d' % i }}{% endfor %}",
      "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}",
      "{% for x in range(99999) recursive %}{{ loop(range(99999)) }}{% endfor %}",
      "{% for i in range(99999) %}{{ loop.changed('a' * 9999) }}{% endfor %}",
  };
  for (const std::string& source : hostile) {
    CAPTURE(source.substr(0, 200));
    CHECK(render(source).status().code() == StatusCode::kResourceExhausted);
  }
}

TEST_CASE("a template nested too deep is refused when it is parsed") {
  const std::string nested[] = {
      "{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
      "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}",
      "{{ " + repeated("-", 5000) + "1 }}",
      "{{ " + repeated("not ", 5000) + "1 }}",
      "{{ 1" + repeated(" + 1", 5000) + " }}",
      "{{ 1" + repeated(" and 1", 5000) + " }}",
      "{{ a" + repeated(".a", 5000) + " }}",
      "{{ a" + repeated("()", 5000) + " }}",
      "{{ a" + repeated("[0]", 5000) + " }}",
      "{{ a" + repeated(" | e", 5000) + " }}",
      "{{ 1" + repeated(" if 1 else 1", 5000) + " }}",
      "{{ 1" + repeated(" if 1", 5000) + " }}",
      repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000),
      "{% for " + repeated("(", 5000) + "a" + repeated(")", 5000) + " in b %}{% endfor %}",
  };
  for (const std::string& source : nested) {
    CAPTURE(source.substr(0, 40));
    const auto parsed = ChatTemplate::parse(source);
    CHECK(parsed.status().code() == StatusCode::kResourceExhausted);
  }
  CHECK(ChatTemplate::parse(std::string(std::size_t{2} << 20, 'a')).status().code() ==
        StatusCode::kResourceExhausted);
}

TEST_CASE("many branches and long concatenations are no depth") {
  const std::string branches =
      "{% if 0 %}" + repeated("{% elif 0 %}", 2000) + "{% else %}x{% endif %}";
  CHECK(marked(branches, {}) == "x");
  CHECK(marked("{{ 'a'" + repeated(" ~ 'b'", 1000) + " }}", {}).size() == 1001);
}

TEST_CASE("values that refer to themselves through a namespace are freed") {
  // The leak checker of the asan build is what would fail here.
  CHECK(
      render("{% set ns = namespace() %}{% set ns.a = ns %}{% set ns.b = [ns] %}"
             "{% macro m() %}{% endmacro %}{% set ns.m = m %}"
             "{% for x in [1] %}{% set ns.l = loop %}{% macro n() %}{{ x }}{% endmacro %}"
             "{% set ns.n = n %}{% endfor %}{{ ns.n() }}{{ ns.l.index }}"
             "{% for x in [1] recursive %}{{ loop.changed(loop) }}{% set ns.r = loop %}{% endfor %}"
             "{{ ns.r([1]) }}{% set ns.j = joiner() %}")
          .ok());
}

TEST_CASE("integers that leave 64 bits are an error, not a wrong number") {
  for (const char* expression :
       {"9223372036854775807 + 1", "-9223372036854775807 - 2", "9223372036854775807 * 2", "3 ** 99",
        "(-9223372036854775807 - 1) // -1", "-(-9223372036854775807 - 1)"}) {
    CAPTURE(expression);
    CHECK(render("{{ " + std::string(expression) + " }}").status().code() ==
          StatusCode::kInvalidArgument);
  }
  CHECK(marked("{{ (-9223372036854775807 - 1) % 3 }} {{ (-9223372036854775807 - 1) % -1 }}", {}) ==
        "1 0");
}

TEST_CASE("invalid UTF-8 in a message passes through unharmed") {
  CHECK(marked("{{ messages[0].content | upper | trim | reverse }}", one_message("\xff"
                                                                                 "a\xe4\xb8")) ==
        "[\xe4\xb8"
        "A\xff]");
}

TEST_CASE("an argument nested too deep is refused") {
  Value value = Value::list({});
  for (int i = 0; i < 200; ++i)
    value = Value::list({value});
  ChatTemplateInput input;
  input.globals.emplace_back("x", value);
  CHECK(render("{{ x }}", input).status().code() == StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace brigade::model
