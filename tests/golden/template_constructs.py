# SPDX-License-Identifier: Apache-2.0
"""Small templates, each of one construct of the language or a few, and the variables that they see."""

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

# A line is a template.
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
{{ '%s is %d' % ('a', 3) }} {{ '%05.2f|%-6s|%6s|%x|%X|%o|%c|%%|%r' % (3.14159, 'ab', 'cd', 255, 255, 8, 'z', 'q') }} {{ '%(a)s-%(b)03d' % {'a': 'x', 'b': 7} }} {{ '%s' % xs }} {{ '%s' % none }} {{ '%d' % 3.9 }} {{ '%e %g %G %.3g' % (12345.678, 0.00001, 1e20, 2.5) }}
{{ '%+d % d %#x %#o %08d %-8d| %.3s %*d' % (5, 5, 255, 8, -42, 7, 'abcdef', 6, 12) }} {{ '%.2f%%' | format(12.345) }} {{ '%s %s' | format('a', 'b') }} {{ '%(x)s' | format(x=1) }} {{ '%5s|%-5s|' % ('é', '一') }}
{{ '%d' % 'x' }}
{{ '%s %s' % 'x' }}
{{ '%s' % (1, 2) }}
{{ 'abc' % 1 }}
{{ '%z' % 1 }}
{{ '%' % 1 }}
{{ '%(a)s' % 1 }}
{% for x in [{'n': 1, 'c': [{'n': 2, 'c': []}, {'n': 3, 'c': [{'n': 4, 'c': []}]}]}] recursive %}{{ loop.depth }}{{ loop.depth0 }}:{{ x.n }}{% if x.c %}({{ loop(x.c) }}){% endif %}{% if not loop.last %},{% endif %}{% endfor %}
{% for a in [1, 2] %}{% for b in [1] %}{{ loop.depth }}{% endfor %}{{ loop.depth }}{% endfor %}
{% for x in [3, 1] if x > 1 recursive %}{{ x }}{% else %}none{% endfor %}
{% for x in xs %}{{ loop([1]) }}{% endfor %}
{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{{ loop.changed(x, 0) }} {% endfor %}
{{ [1, 2, 3, 4, 5] | batch(2) | list }} {{ [1, 2, 3] | batch(2, 'x') | list }} {{ [1, 2, 3, 4, 5] | slice(3) | list }} {{ [1, 2, 3, 4] | slice(3, '-') | list }}
[{{ 'ab' | center(7) }}] [{{ 'abc'.center(8, '*') }}] [{{ 'abc'.ljust(5) }}] [{{ 'abc'.rjust(5, '.') }}] [{{ '-42'.zfill(6) }}] [{{ 'ab'.center(5) }}] [{{ 'abcd'.center(2) }}] [{{ '7'.zfill(3) }}]
{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('-') }} {{ 'abc'.rpartition('-') }} {{ 'a-b-c'.rfind('-') }} {{ 'abc'.rfind('z') }} {{ 'abc'.index('c') }} {{ 'abcbc'.rindex('bc') }} {{ 'abc'.find('') }} {{ 'abc'.rfind('') }}
{{ 'abc'.index('z') }}
{{ 'aBc Ünï'.swapcase() }} {{ 'ABC'.casefold() }} {{ 'abc'.islower() }} {{ 'A1'.isupper() }} {{ '1'.islower() }} {{ 'aé'.isascii() }} {{ '12'.isnumeric() }} {{ '12'.isdecimal() }}
{{ 'hello big wide world' | truncate(12) }} {{ 'hello big wide world' | truncate(12, true) }} {{ 'hello big' | truncate(6) }} {{ 'hello big wide world' | truncate(12, end='!', leeway=0) }} {{ 'hello' | truncate(4, true, '', 0) }}
{{ 'a b/c?é&' | urlencode }} {{ {'a b': 'c/d', 'e': 1} | urlencode }} {{ [('x', 'y z')] | urlencode }} {{ 'two words_here now' | wordcount }} {{ '<b>' | forceescape }}
{{ 'upper' is filter }} {{ 'nosuch' is filter }} {{ 'even' is test }} {{ 'nosuch' is test }}
{% set comma = joiner() %}{% for x in xs %}{{ comma() }}{{ x }}{% endfor %} {% set bar = joiner(' | ') %}{{ bar() }}a{{ bar() }}b
{{ 'abc' | attr('upper') is callable }} {{ d | attr('b') is defined }}
{% generation %}a{{ n }}{% endgeneration %}|{% for x in xs %}{%- generation %} {{ x }} {% endgeneration -%}{% endfor %}
{% set ns = namespace(a=1) %}{% set ns.b %}x{{ ns.a }}{% endset %}{{ ns.b }}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m('a') ~ m('b') | upper }} {{ (m('c') + 'd') | length }} {{ m('e').upper() }}
{% macro a(x) %}[{{ x }}{{ caller(x + 1) if caller else '' }}]{% endmacro %}{% call(y) a(1) %}<{{ y }}>{% endcall %}{{ a(5) }}
{{ xs[1:][0] }} {{ xs[:-1] | last }} {{ 'abc'[-2:] }} {{ (1, 2, 3)[1:] }} {{ xs[::2] }} {{ xs[5:] }} {{ xs[-9:2] }}
{{ d.keys() | list | first }} {{ d.values() | list | last }} {{ 'b' in d.keys() }} {{ d.items() | list | length }}
{{ {'a': 1, 'a': 2} }} {{ {1: 'x'}[1] }} {{ {'x': [1]}.get('x')[0] }} {{ {} | length }} {{ dict(d, z=1).z }}
{{ messages[0] }}
{{ [1, [2, [3]]] | string }} {{ [1, 2] | tojson | length }} {{ {'k': [true, none, 1.5]} | tojson }} {{ 'é' | tojson }} {{ [] | tojson(indent=2) }} {{ [[1], {}] | tojson(indent=1) }}
{{ 10 // 3 }} {{ -10 // 3 }} {{ 10 % -3 }} {{ 2.0 ** 3 }} {{ 0.1 * 3 }} {{ 1e100 }} {{ 1 / 3 }} {{ 7.0 // 2 }} {{ 1 == 1.0 == true }}
{% if xs and d and not empty and n %}all{% endif %}{% if (not no) and (yes or no) %}!{% endif %}{{ (no or none) is none }}
{{ ('a', 'b') | join }} {{ 'abc' | join('-') }} {{ d | join(',') }} {{ [[1, 2], [3]] | sum(start=[]) }} {{ [1.5, 2] | sum }}
{% include 'x' %}
{% extends 'x' %}
{% import 'x' as y %}
{% from 'x' import y %}
{{ ''.__class__ }}
{{ d.__class__.__mro__ }}
{{ xs.append(1) }}
{{ d.update({'x': 1}) }}
{{ (''|attr('__class__')).x }}
{{ '{}-{}'.format(1, 'a') }} {{ '{1}{0}'.format('x', 'y') }} {{ '{a}{b}'.format(a=1, b='q') }} {{ '{{}}{}'.format(none) }} {{ '[{:5}|{:<5}|{:>5}|{:^5}|{:*^7}]'.format('ab', 'cd', 'ef', 'gh', 'ij') }} {{ '[{:5}|{:05d}|{:+}|{:.2f}|{:x}|{:8.3f}|{:<4}]'.format(42, 42, 42, 3.14159, 255, 2.5, 7) }} {{ '{!r}:{!s}'.format('a', 'b') }} {{ '{:.2}'.format('abc') }} {{ '{} {}'.format([1], 2.0) }}
{{ '{}'.format() }}
{{ '{x}'.format(1) }}
{{ '{'.format(1) }}
{{ '}'.format(1) }}
{{ '{} {0}'.format(1) }}
{{ '{:d}'.format('x') }}
{{ none | selectattr('a') | list }} {{ none | map('upper') | list }} {{ none | reject('odd') | list }} {{ 0 | select | list }}
{{ range.__globals__ }}
{{ namespace().__init__.__globals__ }}
{{ "%s" }}{{ 10 % 4 }}
"""

# These are more than a line.
MULTI = [
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
