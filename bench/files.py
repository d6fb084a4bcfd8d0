#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How small `wirepress compress` makes files of several kinds, made by a seed: by default, with
--smallest, with auto and with zstd. Writes bench/results/files.json and the table of
docs/guides/files.md.

    python3 bench/files.py            about a minute
"""

from __future__ import annotations

import contextlib
import io
import json
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import results
import sample_data

from wirepress.commands import cli

PAGE = results.ROOT / "docs" / "guides" / "files.md"
WAYS = {
    "default": (),
    "`--smallest`": ("--smallest",),
    "`-r auto`": ("-r", "auto"),
    "as bytes, `-r zstd:1`": ("--format", "bytes", "-r", "zstd:1"),
}
N = 1 << 22


def weights(seed: int = 1) -> np.ndarray:
    """Normal, of the deviation that a layer of 1024 inputs begins with."""
    draw = np.random.Generator(np.random.PCG64(seed))
    return (draw.standard_normal(N, np.float32) / 32).reshape(-1, 1024)


def bfloat16(values: np.ndarray) -> bytes:
    return (values.view(np.uint32) + 0x8000 >> 16).astype(np.uint16).tobytes()


def safetensors() -> bytes:
    """One layer of weights in bfloat16, and its norms."""
    body, norms = bfloat16(weights()), np.ones(2048, np.float32).tobytes()
    header = {
        "w": {"dtype": "BF16", "shape": [N // 1024, 1024], "data_offsets": [0, len(body)]},
        "norm": {
            "dtype": "F32", "shape": [2048], "data_offsets": [len(body), len(body) + len(norms)]
        },
    }  # fmt: skip
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body + norms


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def field() -> np.ndarray:
    z, y, x = np.meshgrid(*(np.linspace(0, 4, n) for n in (64, 128, 256)), indexing="ij")
    return (np.sin(x * y) + np.cos(z)).astype(np.float32)


def tokens() -> np.ndarray:
    draw = np.random.Generator(np.random.PCG64(3))
    return (draw.zipf(1.3, N // 2) % 50257).astype(np.int64)


def checkpoint() -> bytes | None:
    """Weights and the two moments of Adam, a tenth of them never touched."""
    try:
        import torch
    except ImportError:
        return None
    moments = sample_data.gradients(N).reshape(-1, 1024)
    state = {"w": weights(), "exp_avg": moments, "exp_avg_sq": moments**2}
    file = io.BytesIO()
    torch.save({key: torch.from_numpy(value) for key, value in state.items()}, file)
    return file.getvalue()


def files() -> Iterator[tuple[str, str, bytes | None]]:
    yield "model.safetensors", "weights in bfloat16", safetensors()
    yield "checkpoint.pt", "float32 weights, sparse moments", checkpoint()
    yield "field.npy", "a smooth float32 field", npy(field())
    yield "fortran.npy", "the same, in Fortran order", npy(np.asfortranarray(field()))
    yield "tokens.npy", "int64 token numbers", npy(tokens())
    yield "text.txt", "text made from a seed", sample_data.text(16 << 20)


def ratio(path: Path, flags: tuple[str, ...]) -> float:
    said = io.StringIO()
    out = path.with_name("out.wpr")
    command = ["compress", "-f", "-q", "--json", *flags, str(path)]
    with contextlib.redirect_stdout(said):
        if cli.main([*command, "-o", str(out)]):
            raise SystemExit(f"wirepress {' '.join(command)} failed")
    (row,) = json.loads(said.getvalue())
    return float(row["ratio"])


def page(rows: list[dict]) -> str:
    lines = [
        "| file | what | " + " | ".join(WAYS) + " |",
        "|---|---|" + "---|" * len(WAYS),
    ]
    for row in rows:
        cells = (f"{row[way]:.2f}" for way in WAYS)
        lines.append(f"| `{row['file']}` | {row['what']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, what, content in files():
            if content is None:
                print(f"{name}: left out, PyTorch is not installed", file=sys.stderr)
                continue
            path = Path(folder) / name
            path.write_bytes(content)
            found = {way: ratio(path, flags) for way, flags in WAYS.items()}
            rows.append({"file": name, "what": what, "size": len(content), **found})
            print(rows[-1], file=sys.stderr)
    results.write("files", {"rows": rows})
    results.put(PAGE, "files", page(rows), "# Files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
