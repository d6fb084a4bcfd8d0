#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios and speeds of deflate and lz4 levels on whole files, beside zlib and lz4 themselves.

    bench/silesia.py FILE... [--seconds 1]

FILE may be packed with zstd (.zst). One thread, one block for the whole file, as the published
tables of the Silesia corpus have it. Prints a table and writes bench/results/silesia.json.
"""

from __future__ import annotations

import argparse
import dataclasses
import zlib
from collections.abc import Iterator
from pathlib import Path

import lz4.block
import results
import zstandard

from wirepress import arrays
from wirepress.commands import bench

RECIPES = (
    *(f"deflate:{level}" for level in (1, 3, 6, 8, 9, 10, 12)),
    *(f"lz4:{level}" for level in (1, 3, 6, 9, 12)),
)
BLOCK = "16MiB"


def unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".zst":
        return data
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def plain(data: memoryview) -> Iterator[bench.Subject]:
    yield bench.plain_subject(
        data, "zlib:6", "plain zlib", lambda d: zlib.compress(d, 6), zlib.decompress
    )
    yield bench.plain_subject(data, "lz4:1", "plain lz4", lz4.block.compress, lz4.block.decompress)
    yield bench.plain_subject(
        data,
        "lz4:9",
        "plain lz4",
        lambda d: lz4.block.compress(d, mode="high_compression", compression=9),
        lz4.block.decompress,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row (1)")
    args = parser.parse_args()
    rows = []
    files = {path.name.removesuffix(".zst"): memoryview(unpacked(path)) for path in args.files}
    copy = bench.Copy(max(map(len, files.values())))
    for name, data in files.items():
        view = arrays.describe(data)
        subjects = [
            *plain(data),
            *(
                bench.frame_subject(data, view, each, block_size=BLOCK, threads=1)
                for each in RECIPES
            ),
        ]
        rows += [bench.measure(name, data, subject, args.seconds, copy) for subject in subjects]
    bench.print_table(rows, copy.gbps)
    measured = {
        "block_size": BLOCK,
        "memcpy_gbps": copy.gbps,
        "rows": [dataclasses.asdict(row) for row in rows],
    }
    path = results.write("silesia", measured)
    print(f"\nwritten: {path.relative_to(results.ROOT)}")


if __name__ == "__main__":
    main()
