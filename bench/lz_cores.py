#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes a clock of the LZ decoders of rtl/lz on whole files, simulated, and the page about them.

    bench/lz_cores.py FOLDER [--limit 6]     counts clocks, writes bench/results/lz_cores.json
    bench/lz_cores.py --page                 writes docs/fpga-lz.md from it

FOLDER holds the files (of the Silesia corpus, for the page); one packed with zstd (.zst) is
unpacked first. A file is coded in blocks of 64 KiB, each a packet; clocks are those from a
packet's first beat to its last one, so that what a packet costs at its ends counts.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import results
import silesia

import wirepress

BLOCK = "64KiB"
CODECS = ("lz4", "snappy")
PAGE = results.ROOT / "docs" / "fpga-lz.md"
# What an 8-byte path can do that makes one sequence a clock.
AIMS = {"dickens": 5.5, "reymont": 5.5, "mr": 5.5, "xml": 6.5, "nci": 6.5, "ooffice": 7, "osdb": 7}


def measured(name: str, data: bytes, codec: str) -> dict[str, Any]:
    frame = bytes(wirepress.compress(data, codec, block_size=BLOCK, engine="cpu"))
    before = wirepress.engine_clocks("rtl")
    if bytes(wirepress.decompress(frame, engine="rtl", threads=1)) != data:
        raise SystemExit(f"{name}: {codec} on the core gives other bytes")
    clocks = wirepress.engine_clocks("rtl") - before
    return {"file": name, "codec": codec, "bytes": len(data), "frame_bytes": len(frame),
            "clocks": clocks}  # fmt: skip


def count(folder: Path, limit: int) -> None:
    rows = []
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        name = path.name.removesuffix(".zst")
        if name in AIMS:
            data = silesia.unpacked(path)[: limit << 20]
            rows += [measured(name, data, codec) for codec in CODECS]
    results.write("lz_cores", {"block_size": BLOCK, "limit_mib": limit, "rows": rows})


def page() -> None:
    raw = json.loads((results.FOLDER / "lz_cores.json").read_text())
    heads = ("codec", "file", "bytes", "ratio", "clocks", "bytes a clock", "aim")
    rows = []
    for row in sorted(raw["rows"], key=lambda row: row["codec"]):
        rate = row["bytes"] / row["clocks"]
        aim = AIMS[row["file"]] if row["codec"] == "lz4" else 6.5
        ratio = row["bytes"] / row["frame_bytes"]
        rows.append((row["codec"], row["file"], str(row["bytes"]), f"{ratio:.2f}",
                     str(row["clocks"]), f"{rate:.2f}",
                     f"{aim:g}" + ("" if rate >= aim else ", missed")))  # fmt: skip
    lines = (f"| {' | '.join(cells)} |\n" for cells in (heads, ["---"] * len(heads), *rows))
    PAGE.write_text(HEAD + "".join(lines) + TAIL.format(**raw))


HEAD = """# LZ decoders on an FPGA

Bytes of output a clock of the decoders of [`rtl/lz`](../rtl/lz/README.md), counted in simulation.

"""
TAIL = """
    {command}
    python3 bench/lz_cores.py --page

counted the clocks ({date}, [raw](../bench/results/lz_cores.json))
and wrote this page. The files are the first {limit_mib} MiB of files of the Silesia corpus, in
blocks of {block_size}; the ratio is that of the whole frame. Neither side pauses, and a packet's
first and last clocks count. Areas and clock rates stand in [the table](results/fpga-area.md).

The aims are what one sequence a clock allows on a path of 8 bytes, with literals and matches side
by side; for snappy, what two elements a clock allow. A clock joins the end of a match with the
literals behind it, but not with another match: the history has one read port. The parser of snappy
takes one element a clock, so its rate is at most the mean size of elements.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--limit", type=int, default=6, help="MiB of each file (6)")
    parser.add_argument("--page", action="store_true", help="writes docs/fpga-lz.md")
    args = parser.parse_args()
    if args.page == (args.folder is not None):
        parser.error("either FOLDER or --page")
    if args.page:
        page()
    else:
        count(args.folder, args.limit)


if __name__ == "__main__":
    main()
