# SPDX-License-Identifier: Apache-2.0
"""The checks of the code find what they are for, and let pass what is right."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_script(name: str) -> ModuleType:
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


check_arrows = load_script("check_arrows")
check_tests = load_script("check_tests")


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("router/core/plan.cpp", '"shard_worker/core/step_inputs.h"'),
        ("shard_worker/core/x.cpp", '"router/core/types.h"'),
        ("common/base/x.h", '"common/wire/messages.h"'),
        ("kernels/cpu/x.cpp", '"shard_worker/model/decoder.h"'),
        ("router/core/x.cpp", '"common/net/socket.h"'),
        ("router/core/x.cpp", "<thread>"),
        ("router/api/socket.cpp", "<zmq.hpp>"),
        ("router/actors/x.cpp", '"worker_generated.h"'),
        ("router/core/x.cpp", "<caf/all.hpp>"),
        ("common/net/x.cpp", "<boost/asio/io_context.hpp>"),
        ("shard_worker/model/x.cpp", "<cuda_runtime.h>"),
        ("tools/x.cpp", "<toml++/toml.h>"),
        ("common/base/x.cpp", '"status.h"'),
        ("elsewhere/x.cpp", "<vector>"),
    ],
)
def test_a_forbidden_include_is_found(path: str, include: str) -> None:
    assert len(check_arrows.offences_in(path, f"#pragma once\n#include {include}\n")) >= 1


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("router/core/plan.cpp", '"common/wire/messages.h"'),
        ("shard_worker/model/x.cpp", '"kernels/op.h"'),
        ("common/net/socket.cpp", "<zmq.hpp>"),
        ("common/wire/codec.cpp", '"worker_generated.h"'),
        ("router/actors/dispatcher.cpp", "<caf/all.hpp>"),
        ("router/api/http/connection.cpp", "<boost/beast/http.hpp>"),
        ("tools/http_client.cpp", "<boost/asio/connect.hpp>"),
        ("tests/router/core/x.cpp", '"router/core/types.h"'),
        ("common/base/x.cpp", '"common/base/status.h"'),
    ],
)
def test_an_allowed_include_passes(path: str, include: str) -> None:
    assert check_arrows.offences_in(path, f"#include {include}\n") == []


@pytest.mark.parametrize(
    "line",
    [
        'TEST_CASE("x" * doctest::' + "skip())",
        "// TEST_" + 'CASE("x") {',
        "#if " + "0",
        "@pytest.mark." + 'skip(reason="later")',
        "    pytest." + 'skip("no GPU")',
    ],
)
def test_a_test_that_is_switched_off_is_found(line: str) -> None:
    assert len(check_tests.switched_off("tests/x", f"\n{line}\n")) == 1


def test_a_source_that_no_cmake_file_names_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "common" / "base"
    folder.mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text("brigade_library(base SOURCES status.cpp)\n")
    cmake = check_tests.read_cmake_files(tmp_path)
    assert check_tests.is_built(folder / "status.cpp", cmake)
    assert not check_tests.is_built(folder / "tus.cpp", cmake)
    assert not check_tests.is_built(folder / "status_old.cpp", cmake)
