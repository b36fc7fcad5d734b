# SPDX-License-Identifier: Apache-2.0
"""docs/api.md names the fields and paths that the code reads, and no others."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text("utf-8")
HTTP = ROOT / "router" / "api" / "http"
READERS = ["parse.cpp", "parse_fields.cpp", "parse_messages.cpp", "parse_sampling.cpp"]

# Words in backquotes in the page's tables and lists that are values or parts of answers.
NOT_FIELDS = set("""auto none text system developer user assistant tool stop length null
    unsupported_parameter unsupported_endpoint context_length_exceeded invalid_value answer_too_large
    stop_reason finish_reason usage system_fingerprint rank token_ids prompt_token_ids token_strs
    max_model_len code""".split())
# Fields that are also such words.
ALSO_FIELDS = {"stop", "user"}


def fields_in_code() -> set[str]:
    names: set[str] = set()
    for name in READERS:
        text = (HTTP / name).read_text("utf-8")
        names |= set(
            re.findall(r'\.(?:get|boolean|integer|number|bits|string|find)\(\s*"(\w+)"', text)
        )
        names |= set(re.findall(r'read_\w+\(\s*fields,\s*"(\w+)"', text))
    names |= {"tool_call_id", "name"}  # read in a loop over their names
    names |= {"type", "text", "function", "arguments", "id"}  # found in values
    unsupported = (HTTP / "unsupported.cpp").read_text("utf-8")
    names |= set(re.findall(r'^\s*\{"(\w+)",', unsupported, re.MULTILINE))
    return names


def words_in_page() -> set[str]:
    return set(re.findall(r"`(\w+)`", PAGE))


def test_every_field_that_is_read_is_on_the_page() -> None:
    fields = fields_in_code()
    assert len(fields) > 80
    quoted = words_in_page() | set(re.findall(r'"(\w+)":', PAGE))
    assert not sorted(fields - quoted)


def test_every_field_on_the_page_is_read() -> None:
    words = {word for word in words_in_page() if re.fullmatch(r"[a-z][a-z_]*", word)}
    assert not sorted(words - fields_in_code() - (NOT_FIELDS - ALSO_FIELDS))


def test_every_path_on_the_page_is_served_and_the_other_way_round() -> None:
    routes = (HTTP / "routes.cpp").read_text("utf-8")
    served = {path.rstrip("/") for path in re.findall(r'\{"(/[\w/]*)",\s*(?:false|true)', routes)}
    told = {path.rstrip("/") for path in re.findall(r"`?(?:GET|POST) (/[\w/]+)", PAGE)}
    told |= {"/v1/responses", "/v1/embeddings"}
    assert served == told


def test_a_field_that_is_refused_is_not_told_twice() -> None:
    refused = PAGE.split("## Refused until")[1].split("## Answers")[0]
    unsupported = (HTTP / "unsupported.cpp").read_text("utf-8")
    rules = set(re.findall(r'^\s*\{"(\w+)",', unsupported, re.MULTILINE)) - {"suffix"}
    assert set(re.findall(r"`([a-z_]+)`", refused)) == rules
