# SPDX-License-Identifier: Apache-2.0
"""Renders templates with Jinja2, set up as Hugging Face's renderer sets it up, and writes the outcomes.

    pip install jinja2; python make_template_golden.py templates.json

Each case: the template, the variables it was given, and `output`, or `error` with Jinja's message.
"""

import datetime
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = 1753704615  # 2025-07-28 12:10:15, a Monday


def make_environment() -> ImmutableSandboxedEnvironment:
    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x,
            ensure_ascii=ensure_ascii,
            indent=indent,
            separators=separators,
            sort_keys=sort_keys,
        )

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def strftime_now(format):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(format)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


TEMPLATES = {
    # As stored in the model's GGUF.
    "smollm2": "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "chatml": """{%- for message in messages -%}
    {{ '<|im_start|>' ~ message.role }}
    {{- '\\n' ~ message.content | trim ~ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<|im_start|>assistant\\n' }}
{%- endif -%}
""",
    "llama2": """{% if messages[0]['role'] == 'system' %}
{% set system = messages[0]['content'] %}
{% set turns = messages[1:] %}
{% else %}
{% set system = false %}
{% set turns = messages %}
{% endif %}
{% for message in turns %}
    {% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{ raise_exception('Roles must alternate user/assistant/user/assistant/...') }}
    {% endif %}
    {% if loop.index0 == 0 and system != false %}
        {% set content = '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + message['content'] %}
    {% else %}
        {% set content = message['content'] %}
    {% endif %}
    {% if message['role'] == 'user' %}
{{- bos_token + '[INST] ' + content.strip() + ' [/INST]' -}}
    {% elif message['role'] == 'assistant' %}
{{- ' ' + content.strip() + ' ' + eos_token -}}
    {% endif %}
{% endfor %}
""",
    "llama3": """{{- bos_token }}
{%- if not date_string is defined %}
    {%- set date_string = strftime_now("%d %b %Y") %}
{%- endif %}
{#- The system message is taken out, so that it can be put at the start. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif message.role == 'tool' %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
""",
    "mistral": """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if message.role in ["user", "assistant"] %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, conversation roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"] + eos_token }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported, got " ~ message.role) }}
    {%- endif %}
{%- endfor %}
""",
    "qwen2.5": """{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
""",
    "gemma": """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}""",
    "macros": """{%- macro render_content(content, upper=false) -%}
    {%- if content is string -%}
        {{- content | upper if upper else content -}}
    {%- else -%}
        {%- for part in content if part.type == 'text' -%}
            {{- part.text -}}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- for message in messages if message.role != 'system' -%}
    {%- if loop.previtem is defined and loop.previtem.role == message.role -%}
        {%- continue -%}
    {%- endif -%}
    [{{ loop.index }}/{{ loop.length }} {{ message.role }}] {{ render_content(message.content, upper=loop.first) }}
    {%- if loop.nextitem is not defined %}

END{% else %};{% endif -%}
{%- else -%}
nobody
{%- endfor -%}
""",
}

CONVERSATIONS = {
    "one": [{"role": "user", "content": "Hi there"}],
    "system": [
        {"role": "system", "content": " Be brief. "},
        {"role": "user", "content": "  What is 2+2?\n"},
    ],
    "long": [
        {"role": "system", "content": "Sys"},
        {"role": "user", "content": "a <|im_end|> \u00e9\u4e00\U0001f525"},
        {"role": "assistant", "content": " b\n"},
        {"role": "user", "content": "c 'quoted' \"double\" {{ x }} {% y %}"},
    ],
    "no_system": [
        {"role": "user", "content": "1"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": ""},
    ],
    "wrong_order": [
        {"role": "user", "content": "1"},
        {"role": "user", "content": "2"},
    ],
    "tool": [
        {"role": "user", "content": "1"},
        {"role": "tool", "content": "{\"a\": 1}"},
        {"role": "tool", "content": "second"},
        {"role": "assistant", "content": "done"},
    ],
    "empty": [],
}

VARIABLES = {
    "s": "Hello, World",
    "padded": "  x y  \n",
    "uni": "\u00c9t\u00e9 \u4e00\u4e8c\U0001f525 \u03a3\u0416",
    "n": 7,
    "f": 2.5,
    "yes": True,
    "no": False,
    "nothing": None,
    "xs": [3, 1, 2],
    "empty": [],
    "words": ["pear", "Apple", "fig", "apple"],
    "d": {"b": 1, "a": [1, 2, {"c": None}], "t": "q\"uo'te\n"},
    "people": [
        {"name": "Ann", "age": 30, "tags": ["x"]},
        {"name": "bob", "age": 25, "tags": []},
        {"name": "Cid", "age": 30},
    ],
}

SMALL = r"""
{{ 1 + 2 * 3 - 4 / 2 }}|{{ 7 // 2 }}|{{ -7 // 2 }}|{{ 7 % 3 }}|{{ -7 % 3 }}|{{ 2 ** 10 }}|{{ 2 ** -1 }}|{{ 7 / 2 }}|{{ 6 / 2 }}
{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ - n }} {{ +n }} {{ --n }}
{{ 1.5 + 1 }} {{ 1e3 }} {{ 1.0e20 }} {{ 1e-7 }} {{ 123456789012345678.0 }} {{ 0.1 + 0.2 }} {{ 1_000 }} {{ 5 // 2.0 }} {{ -5.5 % 2 }}
{{ 'a' ~ 1 ~ none ~ true ~ undefined_thing ~ 1.0 }}
{{ 'a' 'b' "c" }}
{{ 'a' * 3 }}{{ 3 * 'ab' }}{{ [1] * 2 }}{{ 'x' * -1 }}
{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ 'a' < 'b' }} {{ 1 == 1.0 }} {{ 1 == true }} {{ '1' == 1 }} {{ [1, 2] < [1, 3] }} {{ (1, 2) == [1, 2] }}
{{ not 1 }} {{ not '' }} {{ not not xs }} {{ not empty and yes }}
{{ 1 and 2 }} {{ 0 or 'x' }} {{ none or false }} {{ '' and 1 }}|{{ 0 and 1 or 2 }}
{{ 1 in xs }} {{ 9 not in xs }} {{ 'ell' in s }} {{ 'b' in d }} {{ not 1 in xs }} {{ 'z' in undefined_thing }}
{{ 'yes' if n > 5 else 'no' }} {{ 'x' if false }} {{ 1 if false else 2 if false else 3 }}
{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[:-3] }} {{ s[::2] }} {{ s[::-1] }} {{ s[99:] }} {{ s[5:2] }} {{ s[-3:] }} {{ s[10:1:-3] }}
{{ uni[0] }}{{ uni[4:6] }}{{ uni[::-1] }}{{ uni | length }}
{{ xs[0] }} {{ xs[-1] }} {{ xs[1:] }} {{ xs[::-1] }} {{ xs[:2] }} {{ xs[9] }} {{ xs.0 }}
{{ d.b }} {{ d['b'] }} {{ d.missing }} {{ d['missing'] is defined }} {{ d.a.2.c }} {{ d.a[2]['c'] }} {{ d.get('b') }} {{ d.get('z', 5) }} {{ d.get('z') }}
{{ d }} {{ xs }} {{ (1,) }} {{ () }} {{ {} }} {{ [] }} {{ {'a': 1, 2: [true, none]} }} {{ [1.0, 'a\'b', "q\"", "both'\""] }}
{{ none }} {{ true }} {{ false }} {{ None }} {{ True }} {{ nothing }} {{ undefined_thing }}
{{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }}
{{ padded.strip() }}|{{ padded.lstrip() }}|{{ padded.rstrip() }}|{{ s.strip('Hd') }}|{{ s.rstrip('dlr') }}|{{ s.lstrip('x') }}
{{ s.split(', ') }} {{ s.split() }} {{ 'a b  c '.split(' ') }} {{ ' a b  c '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a b c d'.split(none, 2) }} {{ ''.split() }} {{ ''.split(',') }}
{{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b  c '.rsplit() }} {{ 'a b c d '.rsplit(none, 1) }} {{ 'a  b'.rsplit(' ') }} {{ 'aXbXc'.split('X')[-1] }} {{ 'a,b'.split(sep=',') }}
{{ 'a\nb\r\nc\n'.splitlines() }} {{ 'a\nb'.splitlines(true) }}
{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ 'they\'re bill\'s'.title() }} {{ 'hELLO wORLD'.capitalize() }} {{ uni.upper() }} {{ uni.lower() }}
{{ 'they\'re bill-x (y) [z]' | title }} {{ 'hELLO' | capitalize }} {{ s | upper }} {{ s | lower }}
{{ s.startswith('Hell') }} {{ s.endswith('ld') }} {{ s.startswith('x') }} {{ s.startswith(('x', 'H')) }} {{ s.endswith('') }}
{{ s.replace('l', 'L') }} {{ s.replace('l', 'L', 2) }} {{ 'abc'.replace('', '-') }} {{ s | replace('World', 'You') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ 'abc'.replace('', '-', 2) }}
{{ s.find('o') }} {{ s.find('zz') }} {{ s.count('l') }} {{ ', '.join(['a', 'b']) }} {{ '-'.join('abc') }} {{ 'abc'.count('') }} {{ uni.find('🔥') }}
{{ '12'.isdigit() }} {{ '1a'.isdigit() }} {{ 'ab'.isalpha() }} {{ ''.isdigit() }} {{ '  '.isspace() }} {{ 'a1'.isalnum() }}
{{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }} {{ 'x'.removeprefix('y') }}
{{ xs.count(1) }} {{ xs.index(2) }}
{{ xs | sort }} {{ xs | sort(reverse=true) }} {{ words | sort }} {{ words | sort(case_sensitive=true) }} {{ people | sort(attribute='age') | map(attribute='name') | list }}
{{ xs | first }} {{ xs | last }} {{ s | first }} {{ s | last }} {{ empty | first }} {{ xs | length }} {{ d | length }} {{ s | count }} {{ empty | last is defined }}
{{ xs | join }} {{ xs | join(', ') }} {{ people | join('/', attribute='name') }} {{ [1, none, 'a', 2.0] | join('-') }}
{{ xs | max }} {{ xs | min }} {{ xs | sum }} {{ people | sum(attribute='age') }} {{ words | max }} {{ people | max(attribute='age') }}
{{ words | unique | list }} {{ xs | reverse | list }} {{ s | reverse }} {{ 'abc' | list }} {{ d | list }}
{{ people | selectattr('age', 'equalto', 30) | map(attribute='name') | list }} {{ people | rejectattr('age', 'eq', 30) | list }} {{ people | selectattr('tags') | list | length }} {{ people | selectattr('tags', 'defined') | list | length }}
{{ [1, 2, 3, 4] | select('odd') | list }} {{ [1, 2, 3, 4] | reject('even') | list }} {{ [0, 1, '', 'a'] | select | list }} {{ [1, 5, 9] | select('>', 4) | list }} {{ [1, 2] | select('in', [2, 3]) | list }}
{{ words | map('upper') | list }} {{ ['a ', ' b'] | map('trim') | join }} {{ words | map('replace', 'p', 'P') | list }}
{{ people | map(attribute='tags.0') | list | length }}
{{ people[:1] | map(attribute='tags.0') | list }} {{ people | map(attribute='tags', default='none') | list }} {{ [[1, 2], [3, 4]] | map(attribute=1) | list }}
{{ d | dictsort }} {{ {'b': 2, 'A': 3, 'c': 1} | dictsort }} {{ {'b': 2, 'A': 3, 'c': 1} | dictsort(true) }} {{ {'b': 2, 'A': 3} | dictsort(by='value') }} {{ {'b': 2, 'A': 3} | dictsort(reverse=true) }}
{{ d | items | list }} {{ undefined_thing | items | list }}
{{ undefined_thing | default('x') }} {{ '' | default('x') }} {{ '' | default('x', true) }} {{ none | default('x') }} {{ none | d('x', boolean=true) }} {{ d.z | default(d.b) }}
{{ '42' | int }} {{ ' 42 ' | int }} {{ 'x' | int }} {{ 'x' | int(5) }} {{ 3.9 | int }} {{ '3.9' | int }} {{ 'ff' | int(0, 16) }} {{ '1.5' | float }} {{ 'x' | float(2.0) }} {{ -3.9 | int }} {{ true | int }} {{ 3 | float }}
{{ -5 | abs }} {{ (-5) | abs }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.567 | round(2) }} {{ 2.1 | round(method='ceil') }} {{ 2.9 | round(0, 'floor') }}
{{ padded | trim }}|{{ 'xxaxx' | trim('x') }}|{{ 5 | string }}|{{ none | string }}|{{ [1] | string }}|{{ 1 | trim }}
{{ '<a href="x">\'&' | e }} {{ '<b>' | escape }} {{ '<b>' | safe }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2) }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(2, blank=true) }}|{{ 'a\nb' | indent('> ') }}|{{ 'a\n' | indent(1) }}
{{ d | tojson }} {{ s | tojson }} {{ uni | tojson }} {{ uni | tojson(ensure_ascii=true) }} {{ none | tojson }} {{ true | tojson }} {{ 1.0 | tojson }} {{ (1, 2) | tojson }}
{{ d | tojson(indent=4) }}
{{ d | tojson(indent=2, sort_keys=true) }}
{{ {'a': [], 'b': {}} | tojson(indent=2) }} {{ d | tojson(separators=(',', ':')) }} {{ '</script>\x01\x7f\t' | tojson }} {{ {1: 2, none: 3, true: 4} | tojson }}
{{ n is number }} {{ n is integer }} {{ f is float }} {{ s is string }} {{ d is mapping }} {{ xs is iterable }} {{ xs is sequence }} {{ d is sequence }} {{ s is iterable }} {{ n is iterable }} {{ yes is boolean }} {{ yes is integer }} {{ yes is number }} {{ xs is mapping }}
{{ n is defined }} {{ undefined_thing is defined }} {{ undefined_thing is undefined }} {{ n is not none }} {{ nothing is none }} {{ undefined_thing is none }} {{ yes is true }} {{ no is false }} {{ 1 is true }} {{ n is not defined }}
{{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby(3) }} {{ 9 is divisibleby 3 }} {{ n is eq 7 }} {{ n is ne 7 }} {{ n is gt 5 }} {{ n is lt 5 }} {{ n is ge 7 }} {{ n is le 6 }} {{ 1 is in [1, 2] }} {{ 'a' is lower }} {{ 'A' is upper }} {{ 'aB' is lower }} {{ n is sameas 7 }} {{ nothing is sameas none }}
{{ range is callable }} {{ s is callable }} {{ not n is defined }} {{ n is defined and n > 3 }} {{ undefined_thing is defined and undefined_thing.x }}
{{ range(3) | list }} {{ range(1, 4) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }} {% for i in range(3) %}{{ i }}{% endfor %}
{{ dict(a=1, b='x') }} {{ dict({'a': 1}, b=2) }} {{ namespace(a=1).a }}
{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S') }} {{ strftime_now('%A, %B %-d, %Y %I:%M %p') }} {{ strftime_now('%y %j %a %e %%') }}
{% set x = 5 %}{{ x }} {% set a, b = 1, 2 %}{{ a + b }} {% set t = (1, 2) %}{{ t }} {% set u = 1, 2 %}{{ u }}
{% set x = 1 %}{% for i in xs %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(x=0, last='') %}{% for i in xs %}{% set ns.x = ns.x + i %}{% set ns.last = i %}{% endfor %}{{ ns.x }} {{ ns.last }} {{ ns.missing is defined }}
{% if yes %}{% set y = 1 %}{% endif %}{{ y }}
{% set block %}a{{ n }}b{% endset %}[{{ block }}] {% set b2 | upper | trim %} x {% endset %}[{{ b2 }}]
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}
{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.cycle('a', 'b') }} {{ loop.depth }}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}
{% for x in empty %}a{% else %}none{% endfor %}{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }} {% else %}none{% endfor %}{% for x in xs if x > 9 %}a{% else %}nothing{% endfor %}
{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %} {% for x in xs %}{{ x }}{% if x == 1 %}{% break %}{% endif %}{% endfor %}
{% for a in xs %}{% for b in xs %}{{ loop.index }}{% if b == 1 %}{% break %}{% endif %}{% endfor %}{{ loop.index }};{% endfor %}
{% for c in 'aé' %}[{{ c }}]{% endfor %}{% for x in undefined_thing %}x{% endfor %}{{ loop is defined }}
{% if n > 10 %}a{% elif n > 5 %}b{% elif n > 6 %}c{% else %}d{% endif %}{% if no %}x{% else %}y{% endif %}{% if not no %}z{% endif %}
{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(1, c='z') }} {{ m() }} {{ m(a=5) | upper }}
{% macro outer(x) %}<{{ x }}>{{ caller() }}</{{ x }}>{% endmacro %}{% call outer('b') %}in {{ n }}{% endcall %}
{% macro each(xs) %}{% for x in xs %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(x) each(xs) %}[{{ x }}]{% endcall %}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}
{% set g = 1 %}{% macro see() %}{{ g }}{% endmacro %}{% set g = 2 %}{{ see() }}
{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}
{% filter upper %}abc {{ n }}{% endfilter %} {% filter replace('a', 'b') | upper %}banana{% endfilter %}
{% raw %}{{ not this }} {% if %}{% endraw %}|{%- raw -%}  x  {%- endraw -%} y
a {%- if yes %} b {%- endif %} c {% if yes -%} d {% endif -%} e
x {{- n -}} y {{ n }} z {{- ' q ' -}} r
  {%+ if yes %}kept{% endif %}
  {{ n }}
	{% set q = 1 %}	{{ q }}
{{ '\n' }}|{{ '\t' }}|{{ '\\' }}|{{ '\x41\u00e9\101' }}|{{ '\q' }}|{{ 'it\'s' }}|{{ "\"" }}|{{ '\U0001f525' }}
{{ [1, 2, [3, {'k': (1,)}]][2][1].k[0] }} {{ {'a': {'b': 'c'}}.a.b }} {{ [1, 2,] }} {{ (1) }} {{ 'abc'[1] }} {{ 'a'.upper().lower() }} {{ ('a' ~ 'b') | upper }}
{{ n|string|length + 1 }} {{ -n|abs }} {{ 1 + '2'|int }} {{ 'a' + 'b' | upper }} {{ not n == 7 }} {{ n == 7 and not n == 8 }} {{ 2 - 1 - 1 }} {{ 10 / 5 / 2 }} {{ 1 ~ 2 + 3 }} {{ 2 * 3 ~ 4 }}
{{ d.b if d.b is defined else 'x' }} {{ [x for x] if no }}
{{ d.a.append(3) }}
{{ undefined_thing.x }}
{{ undefined_thing + 1 }}
{{ 'a' + 1 }}
{{ none + 'a' }}
{{ 1 / 0 }}
{{ xs | nosuchfilter }}
{{ xs is nosuchtest }}
{{ nosuchfunction(1) }}
{{ raise_exception('no ' ~ 'way') }}
{{ 1 < 'a' }}
{{ n() }}
{{ for }}
{{ 1 +
{% if x %}
{% endif %}
{% for x in xs %}{% endfor
{% unknown %}
{{ 'abc }}
{{ (1, 2 }}
{{ [1, 2) }}
{# open
{% raw %} never closed
{{ s.format(1) if no else 'ok' }}{{ missing.attr if no }}
{{ 1 in 5 }}
{{ 5 | length }}
{{ none | length }}
{% for x in 5 %}{% endfor %}
{% set n.x = 1 %}
{% break %}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{{ m2(1) }}{% macro m2(a) %}{{ a }}{% endmacro %}
{{ range(1000000) | length }}
{% set a, b = [1, 2, 3] %}
{{ {}[[]] }}
{{ '%' }}%}{{ '}}' }}{{ '{%' }} } }} %} { a {b
{{ {'a': {'b': 1}} }}{{ {'a':1}['a'] }}
{%if yes%}tight{%endif%}{{n}}{%-for x in xs-%}{{x}}{%-endfor-%}
{{ 1 if yes }}{{ (yes and no) or n }}{{ yes and (no or n) }}
{{ messages is defined }} {{ messages | length }} {{ bos_token }} {{ eos_token }} {{ add_generation_prompt }}
{{ 'a' in ['a'] and 'b' not in ['a'] }} {{ ('x', 'y') | list }} {{ 'x' in ('x', 'y') }}
{{ people | map(attribute='name') | join(', ') }} {{ people[0].tags[0] }} {{ (people | first).name }} {{ people[-1]['name'] }}
{{ words | select('string') | list | length }} {{ words | map('length') | list }} {{ words | map('first') | join }}
{{ 9223372036854775807 }} {{ -9223372036854775807 }}
{{ true + 1 }} {{ true == 1 }} {{ true * 3 }} {{ [true, false] | sum }} {{ 1 is boolean }}
{{ caller is defined }} {{ loop is defined }} {{ none is defined }}
{{ 'A' if 'x' is defined and yes else 'B' }} {{ n if n is not none else 'z' }} {{ 'q' if undefined_thing is not defined else 'w' }}
{% set m = {'role': 'user'} %}{{ m.role }}{{ m['role'] }}{% set k = 'role' %}{{ m[k] }}{{ m.get(k) }}{{ 'role' in m }}
{% for m in [{'a': 1}, {'a': 2}] %}{{ m.a }}{% if not loop.last %}, {% endif %}{% endfor %}
{%- set parts = 'a</think>b</think>c'.split('</think>') %}{{ parts[-1].lstrip('\n') }}{{ parts[0].split('<think>')[-1] }}
{{ s[:5] + '...' if s | length > 5 else s }}
{{ "%s" }}{{ 10 % 4 }}
"""


def cases() -> list[dict]:
    """The small cases: each line of SMALL is one, and these are more than a line."""
    multi = [
        "a {%- if yes %} b {%- endif %} c\n  {% if yes %}\n    indented\n  {% endif %}\nend\n",
        "  {%+ if yes %}kept{% endif %}\n{% if yes +%}\nnewline kept{% endif %}\n  {{ n }}\n\t{% set q = 1 %}\t{{ q }}\n",
        "{{ 'x' }}{% for i in xs %}\n\n  {{ i }}\n{% endfor %}\n\ntail\n\n",
        '{{ "a\nb" }}\r\n  {% if yes %}\r\nx\r{% endif %}\r\n',
        "a{# c\nd #}\n  {# e #}\nf {#- g -#}\n h\n",
        "{% for x in xs -%}\n   {{ x }}\n{%- if not loop.last %},\n{% endif %}\n{%- endfor %}\n",
        "  {% raw %}\n  {{ x }}\n  {% endraw %}\nz",
        "  {%- raw %}\n  {{ x }}\n  {%- endraw +%}\nz",
        "\n\n{% set a = 1 %}\n\n{{ a }}\n\n\n",
        "{%- macro f(x) %}\n  <{{ x }}>\n{%- endmacro %}\n{{ f(1) }}\n  {{- f(2) -}}  \nend",
        "\u00a0 {%- if yes -%}\u3000 x \u2003{%- endif %}",
        "",
        "\n",
        "plain",
    ]
    lines = [line for line in SMALL.split("\n") if line]
    return [
        {"template": text, "variables": VARIABLES}
        for text in multi + lines
    ]


def render(environment, case: dict) -> dict:
    variables = {
        "messages": [],
        "bos_token": "<s>",
        "eos_token": "</s>",
        "add_generation_prompt": False,
        **case["variables"],
    }
    try:
        case["output"] = environment.from_string(case["template"]).render(**variables)
    except Exception as error:
        case["error"] = f"{type(error).__name__}: {error}"
    return case


def main() -> None:
    environment = make_environment()
    chats = []
    for name, template in TEMPLATES.items():
        for conversation, messages in CONVERSATIONS.items():
            for add in (True, False):
                variables = {"messages": messages, "add_generation_prompt": add}
                case = {"template": template, "variables": variables}
                chats.append({"name": f"{name}/{conversation}/{add}", **render(environment, case)})
    small = [render(environment, case) for case in cases()]
    for case in small:
        del case["variables"]
    golden = {
        "magic": "brigade-template-golden",
        "version": 1,
        "now_s": NOW,
        "variables": VARIABLES,
        "chats": chats,
        "small": small,
    }
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, ensure_ascii=True, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
