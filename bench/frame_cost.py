#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the frame costs against the plain libraries, and how two threads scale: 64 MiB, in memory.

    bench/frame_cost.py FILE [--turns 7]

Builds bench/frame_cost.cpp, runs it on FILE (.zst is unpacked), prints a table and writes
bench/results/frame_cost.json. A cost of 5 % means 95 % of the plain library's throughput over the
same blocks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import results
from silesia import unpacked

from wirepress.commands.show import table

BUILD = results.ROOT / "build" / "release"


def configure(folder: Path = BUILD) -> None:
    if not (folder / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "--preset", folder.name], cwd=results.ROOT, check=True)


def build() -> Path:
    configure()
    subprocess.run(["cmake", "--build", BUILD, "--target", "frame_cost"], check=True)
    return BUILD / "bench" / "frame_cost"


def print_table(measured: dict[str, object]) -> None:
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for row in measured["rows"]:  # type: ignore[attr-defined]
        rows.setdefault(row["recipe"], {})[row["subject"]] = row
    cells = []
    for recipe, by in rows.items():
        for side in ("compress_gbps", "decompress_gbps"):
            plain, frame = by["plain"][side], by["frame"][side]
            bare, two = by["frame, no checksum"][side], by["frame, 2 threads"][side]
            speeds = (plain, by["whole"][side], frame, two)
            cells.append(
                (
                    recipe,
                    side.removesuffix("_gbps"),
                    *(f"{speed:.3f}" for speed in speeds),
                    f"{100 * (1 - frame / plain):.1f} %",
                    f"{100 * (1 - bare / plain):.1f} %",
                    f"{two / frame:.2f}x",
                )
            )
    head = ("recipe", "", "plain", "whole", "frame", "2 threads", "cost", "no checksum", "scaling")
    print("GB/s of raw data")
    print(table(cells, head, right=head[2:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--turns", type=int, default=7)
    args = parser.parse_args()
    program = build()
    with tempfile.NamedTemporaryFile() as data:
        data.write(unpacked(args.file))
        data.flush()
        command = [program, data.name, str(args.turns)]
        output = subprocess.run(command, check=True, capture_output=True).stdout
    measured = json.loads(output) | {"data": args.file.name.removesuffix(".zst")}
    print_table(measured)
    path = results.write("frame_cost", measured, compiler=results.compiler(BUILD))
    print(f"\nwritten: {path.relative_to(results.ROOT)}")


if __name__ == "__main__":
    main()
