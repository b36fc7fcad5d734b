# SPDX-License-Identifier: Apache-2.0
"""Chat templates like those of well-known families, written anew, and the conversations to render."""

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

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Weather of a city, \"now\" or later.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Name & country"},
                    "days": {"type": "integer", "enum": [1, 2, 3]},
                    "unit": {"type": ["string", "null"], "default": "\u00b0C"},
                },
                "required": ["city"],
            },
        },
    },
    {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}},
]

# More variables than messages, for templates that know of them.
RICH_CONVERSATIONS = {
    "tools": {
        "tools": TOOLS,
        "messages": [
            {"role": "system", "content": "Use tools."},
            {"role": "user", "content": "Weather in K\u00f6ln?"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "abc123xyz",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": {"city": "K\u00f6ln", "days": 1}},
                    }
                ],
            },
            {"role": "tool", "name": "get_weather", "tool_call_id": "abc123xyz", "content": '{"t": 7.5}'},
            {"role": "assistant", "content": "7.5 degrees."},
            {"role": "user", "content": "Thanks!"},
        ],
    },
    "tools_offered": {"tools": TOOLS, "messages": [{"role": "user", "content": "Hi"}]},
    "two_calls": {
        "tools": TOOLS,
        "messages": [
            {"role": "user", "content": "Both."},
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {
                        "id": f"id000000{i}",
                        "type": "function",
                        "function": {"name": name, "arguments": arguments},
                    }
                    for i, (name, arguments) in enumerate([("get_weather", {"city": "A"}), ("noop", {})])
                ],
            },
            {"role": "tool", "name": "get_weather", "tool_call_id": "id0000000", "content": "one"},
            {"role": "tool", "name": "noop", "tool_call_id": "id0000001", "content": "two"},
        ],
    },
    "thinking": {
        "messages": [
            {"role": "user", "content": "1+1?"},
            {"role": "assistant", "content": "<think>\nEasy.\n</think>\n\n2"},
            {"role": "user", "content": "2+2?"},
            {"role": "assistant", "content": "4", "reasoning_content": "Easy too."},
            {"role": "user", "content": "3+3?"},
        ],
    },
    "no_thinking": {"enable_thinking": False, "messages": [{"role": "user", "content": "1+1?"}]},
    "parts": {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Sys"}]},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": " b"}]},
        ],
    },
    "documents": {
        "documents": [{"title": "T", "text": "Some <text>.", "doc_id": 1}],
        "date_string": "01 Jan 2026",
        "messages": [{"role": "user", "content": "What does it say?"}],
    },
}
