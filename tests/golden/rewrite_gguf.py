#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a GGUF file anew with all its matrices in one type: rewrite_gguf.py IN.gguf OUT.gguf Q8_0|MXFP4|F16|BF16|F32

Weights are dequantised exactly and rounded once; norms stay F32, all keys are kept. An F32 rewrite holds the very same
numbers as its source, so the golden test's float bounds must hold for it too:
    BRIGADE_MODEL=OUT.gguf build/dev/tests/golden_test -tc="float*"
Needs numpy and gguf (PyPI).
"""
import argparse
from pathlib import Path

import gguf
import numpy as np
from gguf.quants import dequantize, quantize


def copy_keys(reader: gguf.GGUFReader, writer: gguf.GGUFWriter) -> None:
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, sub)


def rewrite(source: str | Path, target: str | Path, kind: gguf.GGMLQuantizationType) -> None:
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    copy_keys(reader, writer)
    for tensor in reader.tensors:
        shape = [int(size) for size in reversed(tensor.shape)]
        values = dequantize(tensor.data, tensor.tensor_type).reshape(shape).astype(np.float32)
        if len(shape) == 1 or kind == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, values)
        else:
            writer.add_tensor(tensor.name, quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("type", choices=["Q8_0", "MXFP4", "F16", "BF16", "F32"])
    args = parser.parse_args()
    rewrite(args.source, args.target, gguf.GGMLQuantizationType[args.type])


if __name__ == "__main__":
    main()
