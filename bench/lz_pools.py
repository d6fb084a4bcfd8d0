#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pools of LZ cores at both ends of a link, simulated, beside tables 5.1 and 5.2 of FPGA-MPI.

    bench/lz_pools.py FILE... [--bytes 1048576]   runs build/dev/rtl/pools/lz_pools on the beginning
                                                  of each file, writes bench/results/lz_pools.json
    bench/lz_pools.py --page                      writes docs/results/fpga-pools.md and its picture
                                                  from it, lz_cores.json and rtl_area.json

`cmake --build --preset dev --target lz_pools` makes the program, in minutes. What is counted is
clocks, so the machine does not matter.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
from pathlib import Path
from typing import Any

import results

from wirepress.sim import engine_files

PROGRAM = results.ROOT / "build" / "dev" / "rtl" / "pools" / "lz_pools"
PAGE = results.ROOT / "docs" / "results" / "fpga-pools.md"
CLOCK = 250e6
PAPER = engine_files.load("fpga")
FIGURE = {"lz4": 6.36, "snappy": 6.68, "zstd": 4.45}  # GB/s through both sides
PARTS = ("encode", "decode", "both")


def run(files: list[Path], size: int) -> None:
    command = [str(PROGRAM), "--bytes", str(size), *map(str, files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    results.write("lz_pools", {"block": 16384, "bytes": size, "rows": rows})


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (heads, ("---",) * len(heads), *rows))


def rates(row: dict[str, Any]) -> list[float]:
    return [row["bytes"] / row[part] for part in PARTS]


def pool_cells(row: dict[str, Any]) -> tuple[str, ...]:
    through = f"{rates(row)[2] * CLOCK / 1e9:.2f}"
    return (row["codec"], f"{row['engines']}/{row['engines']}", row["data"],
            f"{row['bytes'] / row['link_bytes']:.2f}", *(f"{r:.2f}" for r in rates(row)),
            through)  # fmt: skip


def alone(rows: list[dict[str, Any]], mixed: dict[str, Any], part: str) -> int:
    """Clocks that the kinds of blocks in `mixed` take one after another, each alone."""
    kinds = [row for row in rows if row["codec"] == mixed["codec"]
             and row["engines"] == mixed["engines"]
             and row["data"] in ("random", "file", "runs")]  # fmt: skip
    return sum(row[part] for row in kinds)


def mixed_cells(rows: list[dict[str, Any]], row: dict[str, Any]) -> list[tuple[str, ...]]:
    return [(row["codec"], f"{row['engines']}/{row['engines']}", part, str(alone(rows, row, part)),
             str(row[part]), f"{100 * (row[part] / alone(rows, row, part) - 1):+.1f} %")
            for part in PARTS]  # fmt: skip


def side_cells(codec: str, side: str) -> tuple[str, ...]:
    model = PAPER.codecs[codec]
    part = model.compress if side == "compress" else model.decompress
    areas = (f"{part.area[key]:g}" for key in ("luts", "brams", "urams"))
    return (f"{codec}, {side}", f"{part.rate / part.clock:.2f}", *areas, f"{part.clock / 1e6:g}",
            f"{part.rate / 1e6:g}")  # fmt: skip


def core_rate(cores: list[dict[str, Any]], codec: str, side: str) -> float:
    rows = [row for row in cores if row["codec"] == ("zstd:1" if codec == "zstd" else codec)]
    if side == "decompress":
        return statistics.fmean(row["bytes"] / row["clocks"] for row in rows)
    return statistics.fmean(row["bytes"] / row.get("large", row)["encoder_clocks"] for row in rows)


def ours_cells(cores: list[dict[str, Any]], areas: dict[str, Any], codec: str, side: str
               ) -> tuple[str, ...]:  # fmt: skip
    area = areas[f"wpr_{codec}_{'enc' if side == 'compress' else 'dec'}"]
    rate = core_rate(cores, codec, side)
    return (f"{codec}, {side}", f"{rate:.2f}", str(area["lut"]), f"{area['bram']:g}",
            f"{area['uram']:g}", f"250 (depth {area['depth']:g})",
            f"{rate * CLOCK / 1e6:.0f}")  # fmt: skip


def needed_cells(cores: list[dict[str, Any]], areas: dict[str, Any], codec: str
                 ) -> tuple[str, ...]:  # fmt: skip
    """As many of these cores as take the rate of the paper's pools."""
    model = PAPER.codecs[codec]
    counts = [math.ceil(FIGURE[codec] * 1e9 / (core_rate(cores, codec, side) * CLOCK))
              for side in ("compress", "decompress")]  # fmt: skip
    luts = sum(n * areas[f"wpr_{codec}_{side}"]["lut"]
               for n, side in zip(counts, ("enc", "dec"), strict=True))  # fmt: skip
    return (codec, f"{FIGURE[codec]}", f"{model.compress.engines}/{model.decompress.engines}",
            f"{model.area()['luts']:g}", f"{counts[0]}/{counts[1]}", str(luts))  # fmt: skip


def picture(rows: list[dict[str, Any]]) -> str:
    bars = [(f"{codec} {PAPER.codecs[codec].compress.engines}/"
             f"{PAPER.codecs[codec].decompress.engines}, the paper", rate, "#ccbb44")
            for codec, rate in FIGURE.items()]  # fmt: skip
    measured: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        measured.setdefault((row["codec"], row["engines"]), []).append(rates(row)[2] * CLOCK / 1e9)
    bars += [(f"{codec} {n}/{n}, here", statistics.fmean(values), "#4477aa")
             for (codec, n), values in measured.items()]  # fmt: skip
    texts, y = [], 10
    for name, rate, color in bars:
        texts.append(f'<text x="170" y="{y + 11}" text-anchor="end">{name}</text>'
                     f'<rect x="180" y="{y}" width="{rate * 24:.1f}" height="14" fill="{color}"/>'
                     f'<text x="{186 + rate * 24:.0f}" y="{y + 11}">{rate:.2f}</text>')  # fmt: skip
        y += 20
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{y + 24}" '
            'font-family="sans-serif" font-size="11">'
            '<rect width="100%" height="100%" fill="white"/>' + "".join(texts)
            + f'<text x="180" y="{y + 12}">GB/s through encoders and decoders, by counts of both'
            "</text></svg>\n")  # fmt: skip


def page() -> None:
    raw = json.loads((results.FOLDER / "lz_pools.json").read_text())
    cores = json.loads((results.FOLDER / "lz_cores.json").read_text())["rows"]
    # Of several builds of a core the first one, which the pools have.
    rows = json.loads((results.FOLDER / "rtl_area.json").read_text())["rows"]
    areas = {row["top"]: row for row in reversed(rows)}
    timed = [row for row in raw["rows"] if "encode" in row]
    kinds = ("random", "file", "runs", "in turns")
    files = [row for row in timed if row["data"] not in kinds]
    mixed = [cells for row in timed if row["data"] == "in turns"
             for cells in mixed_cells(timed, row)]  # fmt: skip
    sides = [(codec, side) for codec in FIGURE for side in ("compress", "decompress")]
    heads = ("core", "bytes a clock", "LUT", "BRAM", "URAM", "MHz", "MB/s")
    PAGE.write_text(TEXT.format(
        pools=table(("codec", "encoders/decoders", "data", "ratio on the link",
                     "encoders, bytes a clock", "decoders", "both", "both, GB/s"),
                    [pool_cells(row) for row in files]),
        kinds=table(("codec", "encoders/decoders", "part", "clocks, each kind alone", "in turns",
                     "difference"), mixed),
        paper=table(heads, [side_cells(*key) for key in sides]),
        ours=table(heads, [ours_cells(cores, areas, *key) for key in sides]),
        needed=table(("codec", "GB/s", "the paper's engines", "their LUT", "cores here",
                      "their LUT"),
                     [needed_cells(cores, areas, codec) for codec in FIGURE]), **raw))  # fmt: skip
    PAGE.with_suffix(".svg").write_text(picture(files))


TEXT = """# Pools of LZ cores

Encoders and decoders of [`rtl/lz`](../../rtl/lz/README.md) in pools at both ends of a link
([`rtl/pools`](../../rtl/pools/README.md)), as FPGA-MPI has them (Chalmers 2025, section 5.1):
packetizer, C encoders, link, D decoders, reassembler. Counted in simulation, with real bytes.

![throughput through both sides](fpga-pools.svg)

Figure 5.2 of the paper anew: its counts and rates above, clocks counted here below, at 250 MHz, the
mean of the files. The paper takes the slower side's sum. Here both pools work on the same bytes at
the same time, with the link between.

## Pools

{pools}
A message of a file's first {bytes} bytes, cut into blocks of {block} bytes. A beat has 64 bytes,
which eight encoders would fill. Encoders alone have a link that always takes; decoders alone, one
that always gives. "Both" joins them over 64 beats. What comes out is compared with what went in.

## Blocks that compress unlike

{kinds}
Random bytes, the first file's, and runs of 3,000 equal bytes: 16 blocks of each kind alone, one
kind after another, and the same blocks in turns. A block that is coded slowly would hold the others
up if they took longer in turns; they take less, since pools fill and empty once. Blocks leave in
the order in which they came; but an engine's queues hold a block, and a core codes the next block
while the literals of the one before it leave.

The same program cuts the end off a block on the link, and loses a block: of three messages the one
with that block is marked, and the two others are whole. A link must have a checksum: LZ4 takes
changed literals for others.

## One engine

Tables 5.1 and 5.2 of the paper (Vitis cores on an Alveo U200, hardware emulation):

{paper}
Cores here:

{ours}
The paper's rates are of gradients, those here the mean of seven files of the Silesia corpus
([by file](../fpga-lz.md)); decoders' in bytes that they give. Areas here are before place and route
([how](fpga-area.md)), and 250 MHz is a class: ECP5 and depth suggest it up to 7 levels. Cores with
more levels are slower, or need more registers. No core here was placed on an UltraScale+.

So the rates of the paper's pools take, at 250 MHz and without queues, packetizer and reassembler:

{needed}
## How it was measured

    cmake --build --preset dev --target lz_pools
    {command}
    python3 bench/lz_pools.py --page

counted ({date}, [raw](../../bench/results/lz_pools.json)) and wrote this page.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    parser.add_argument("--bytes", type=int, default=1 << 20, help="of each file (1048576)")
    parser.add_argument("--page", action="store_true", help="writes the page from raw files")
    args = parser.parse_args()
    if args.page == bool(args.files):
        parser.error("either FILE... or --page")
    if args.page:
        page()
    else:
        run(args.files, args.bytes)


if __name__ == "__main__":
    main()
