# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md names only what is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
FOLDERS = ["common", "kernels", "router", "shard_worker", "tools", "clients"]
HEADERS = [f.read_text("utf-8") for folder in FOLDERS for f in sorted((ROOT / folder).rglob("*.h"))]


def headers_with_class(name: str) -> list[str]:
    return [text for text in HEADERS if re.search(rf"\b(class|struct) {name}\b[^;(]*\{{", text)]


def test_every_named_function_and_class_exists() -> None:
    members = re.findall(r"`([A-Z]\w+)::(\w+)`", PAGE)
    assert len(members) >= 25
    for owner, function in members:
        headers = headers_with_class(owner)
        assert any(re.search(rf"\b{function}\(", text) for text in headers), f"{owner}::{function}"
    for name in re.findall(r"`([A-Z][a-z]\w+)`", PAGE):
        assert headers_with_class(name), name
    life = PAGE.split("## The life of a request")[1].split("## When")[0]
    for function in re.findall(r"`([a-z_]+)`", life):
        assert any(re.search(rf"\b{function}\(", text) for text in HEADERS), function


def test_every_named_path_exists() -> None:
    pattern = r"`((?:common|kernels|router|shard_worker|schemas|clients|tools|tests)/[\w/.]*)`"
    paths = re.findall(pattern, PAGE)
    assert len(paths) >= 10
    for path in paths:
        assert (ROOT / path).exists(), path
