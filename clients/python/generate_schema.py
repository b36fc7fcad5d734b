# SPDX-License-Identifier: Apache-2.0
"""Makes brigade_client/_schema from schemas/client.fbs with flatc.

    python3 generate_schema.py [--flatc flatc] [--schemas DIR] [--out brigade_client/_schema]
"""

import argparse
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NAMESPACE = "brigade.wire.fb"


def generate(flatc: str, schemas: pathlib.Path, out: pathlib.Path) -> None:
    """The generated modules import each other by the schema's namespace; they move into the package."""
    with tempfile.TemporaryDirectory() as folder:
        files = [str(schemas / name) for name in ("common.fbs", "client.fbs")]
        subprocess.run([flatc, "--python", "--no-warnings", "-o", folder, *files], check=True)
        made = pathlib.Path(folder).joinpath(*NAMESPACE.split("."))
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for file in sorted(made.glob("*.py")):
            text = file.read_text().replace(f"from {NAMESPACE}.", "from brigade_client._schema.")
            (out / file.name).write_text(text)
    (out / "__init__.py").write_text("")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flatc", default="flatc")
    parser.add_argument("--schemas", type=pathlib.Path, default=HERE.parent.parent / "schemas")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "brigade_client" / "_schema")
    options = parser.parse_args()
    generate(options.flatc, options.schemas, options.out)


if __name__ == "__main__":
    main()
