# SPDX-License-Identifier: Apache-2.0
"""A file that is no model is refused at once, in one line that says what it is."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support import MODEL, ROOT, run_cli


def gguf_header(version: int = 3, order: str = "<") -> bytes:
    return b"GGUF" + struct.pack(f"{order}IQQ", version, 0, 0)


def head_of_model(size: int) -> bytes:
    with MODEL.open("rb") as file:
        return file.read(size)


def safetensors() -> bytes:
    header = b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    return struct.pack("<Q", len(header)) + header + bytes(4)


def of_architecture(name: str) -> bytes:
    """A header of one key."""
    key = b"general.architecture"
    value = struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(name)) + name.encode()
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + value


def without_tokens() -> bytes:
    return (ROOT / "tests" / "golden" / "families" / "llama3.gguf").read_bytes()


KINDS: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (bytes, "is empty"),
    "text": (lambda: b"# A model\n\nIt is in another file.\n", "not a GGUF file but text"),
    "web page": (lambda: b"<!DOCTYPE html><html>", "not a GGUF file but a web page"),
    "other magic": (lambda: b"GGUX" + bytes(100), 'begins with "GGUX"'),
    "zip": (lambda: b"PK\x03\x04" + bytes(100), "a ZIP archive or a PyTorch checkpoint"),
    "safetensors": (safetensors, "not a GGUF file but safetensors"),
    "big-endian": (lambda: gguf_header(order=">"), "a big-endian GGUF file"),
    "version 1": (lambda: gguf_header(version=1), "GGUF version 1"),
    "version 9": (lambda: gguf_header(version=9), "GGUF version 9"),
    "no model inside": (gguf_header, 'key "general.architecture" is missing'),
    "other architecture": (lambda: of_architecture("mamba"), 'is "mamba"; these can be run: llama, '),
    "no tokens": (without_tokens, 'key "tokenizer.ggml.tokens" is missing'),
    "cut in its header": (lambda: head_of_model(1000), "cut short"),
    "cut in its weights": (lambda: head_of_model(50_000_000), "cut short"),
}


def refusal(path: Path, *command: str) -> str:
    """The one line that a command gives; an AssertionError when it takes long or says more."""
    start = time.monotonic()
    result = run_cli(*command)
    # Without load it takes some 10 ms; the point is that no process is started and waited for.
    assert time.monotonic() - start < 2
    assert result.returncode == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("brigade: ") and line.count(str(path)) == 1
    return line


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_no_model_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    content, message = KINDS[kind]
    path = tmp_path / "model.gguf"
    path.write_bytes(content())
    assert message in refusal(path, "up", "--model", str(path))
    assert message in refusal(path, "perplexity", str(path), "LICENSE")


def test_a_missing_file_and_a_folder_are_refused_in_one_line(tmp_path: Path) -> None:
    missing = tmp_path / "none.gguf"
    assert "cannot find the model" in refusal(missing, "up", "--model", str(missing))
    assert "is a folder: name the .gguf file inside it" in refusal(tmp_path, "up", "--model", str(tmp_path))


def test_a_model_without_one_of_its_parts_is_refused_in_one_line(tmp_path: Path) -> None:
    first = tmp_path / "model-00001-of-00003.gguf"
    entries = b""
    for key, value in ((b"split.no", 0), (b"split.count", 3)):
        entries += struct.pack("<Q", len(key)) + key + struct.pack("<IH", 2, value)
    first.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + entries)
    line = refusal(first, "up", "--model", str(first))
    assert 'part 2 of 3: cannot open "' in line and 'model-00002-of-00003.gguf": No such file' in line
