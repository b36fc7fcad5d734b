# SPDX-License-Identifier: Apache-2.0
"""Builds the package with the modules that flatc makes of the schemas (flatc 2.0.8: Debian's flatbuffers-compiler)."""

import pathlib
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from generate_schema import generate  # noqa: E402


class BuildWithSchema(build_py):
    def run(self) -> None:
        super().run()
        out = pathlib.Path(self.build_lib) / "brigade_client" / "_schema"
        generate("flatc", HERE.parent.parent / "schemas", out)


setup(cmdclass={"build_py": BuildWithSchema})
