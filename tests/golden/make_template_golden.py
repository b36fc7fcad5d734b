# SPDX-License-Identifier: Apache-2.0
"""Renders templates with Jinja2, set up as Hugging Face's renderer sets it up, and writes the outcomes.

    pip install jinja2
    cd tests/golden; python make_template_golden.py templates.json chat_templates/*.jinja

Each case: its template, its variables, and `output` (or, for the templates of files, its hash), or `error` with Jinja's
message. To check templates that are not kept here, name the outcomes to the test:

    python make_template_golden.py /tmp/more.json SOME/FOLDER/*.jinja
    BRIGADE_TEMPLATE_GOLDEN=/tmp/more.json build/dev/tests/tokenizer_test
"""

import json
import pathlib
import sys

from template_chats import CONVERSATIONS, RICH_CONVERSATIONS, TEMPLATES
from template_constructs import MULTI, SMALL, VARIABLES
from template_environment import NOW, make_environment


def hash_text(text: str) -> str:
    """FNV-1a over the UTF-8 bytes."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & ((1 << 64) - 1)
    return f"{value:016x}"


def render(environment, template: str, variables: dict) -> dict:
    all_variables = {"messages": [], "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": False, **variables}
    try:
        return {"output": environment.from_string(template).render(**all_variables)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    environment = make_environment()
    files = {pathlib.Path(path).stem: pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[2:]}
    conversations = {name: {"messages": messages} for name, messages in CONVERSATIONS.items()} | RICH_CONVERSATIONS
    chats = []
    for template, source in (TEMPLATES | files).items():
        for conversation, variables in conversations.items():
            for add in (True, False):
                outcome = render(environment, source, {**variables, "add_generation_prompt": add})
                if template in files and "output" in outcome:
                    outcome = {"hash": hash_text(outcome["output"])}
                case = {"template": template, "conversation": conversation, "add_generation_prompt": add}
                chats.append({**case, **outcome})
    golden = {
        "magic": "brigade-template-golden",
        "version": 2,
        "now_s": NOW,
        "variables": VARIABLES,
        "templates": TEMPLATES,
        "files": {pathlib.Path(path).stem: path for path in sys.argv[2:]},
        "conversations": conversations,
        "chats": chats,
        "small": [
            {"template": text, **render(environment, text, VARIABLES)}
            for text in [*MULTI, *(line for line in SMALL.split("\n") if line)]
        ],
    }
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(golden, out, ensure_ascii=True, indent=0)
        out.write("\n")


if __name__ == "__main__":
    main()
