#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes a clock and ratios of the cores of rtl/lz and rtl/zstd on whole files, and their page.

    bench/lz_cores.py FOLDER [--limit 6]     counts clocks, writes bench/results/lz_cores.json
    bench/lz_cores.py FILE --speed           clocks a second of the simulations, rtl_speed.json
    bench/lz_cores.py --page                 writes docs/fpga-lz.md and docs/fpga-lz.svg from both

FOLDER holds the files (of the Silesia corpus, for the page); one packed with zstd (.zst) is
unpacked first. A file is coded in blocks of 64 KiB, for zstd of 128 KiB, each a packet; clocks are
those from a packet's first beat to its last one, so that what a packet costs at its ends counts.
The decoders of lz4 and snappy are counted with 8 and with 16 bytes a clock, their encoders with two
and with five distances a window. The decoders read the library's blocks; the encoders' blocks are
read by the library.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import results
import rtl_long
import silesia

import wirepress

# Blocks of one more measurement of an encoder, whose packet then goes on: it has blocks of its own.
LARGE = {"zstd:1": "4MiB"}
BLOCKS = {"lz4": "64KiB", "snappy": "64KiB", "zstd:1": "128KiB", "zstd:3": "128KiB"}
PAGE = results.ROOT / "docs" / "fpga-lz.md"
AREA = results.FOLDER / "rtl_area.json"
# What an 8-byte path can do that makes one sequence a clock.
AIMS = {"dickens": 5.5, "reymont": 5.5, "mr": 5.5, "xml": 6.5, "nci": 6.5, "ooffice": 7, "osdb": 7}


# And a 16-byte path that makes two elements a clock, of lz4 or snappy. It is this kernel, whose
# encoder compares five distances.
AIMS_16 = AIMS | {"dickens": 8.5, "reymont": 8.5, "mr": 9.5, "ooffice": 9.5}
AIMS_16 |= dict.fromkeys(("xml", "nci", "osdb"), 12)
LARGER = "verilator16"
RATIO_AIMS = {"xml": -0.14}  # of the encoder of lz4, by the library's; of other files -0.03


def counted(engine_work: Callable[[], bytes]) -> tuple[bytes, int]:
    before = wirepress.engine_clocks("rtl")
    result = bytes(engine_work())
    return result, wirepress.engine_clocks("rtl") - before


def large(data: bytes, codec: str) -> dict[str, Any]:
    options = {"block_size": LARGE[codec], "threads": 1}
    coded, clocks = counted(lambda: wirepress.compress(data, codec, engine="rtl", **options))
    if clocks == 0 or bytes(wirepress.decompress(coded, engine="cpu")) != data:
        raise SystemExit(f"{codec} on the core gives other bytes in {LARGE[codec]}")
    library = bytes(wirepress.compress(data, codec, engine="cpu", **options))
    return {"encoder_frame_bytes": len(coded), "encoder_clocks": clocks,
            "frame_bytes": len(library)}  # fmt: skip


def larger_build(name: str, data: bytes, codec: str, frame: bytes) -> dict[str, Any]:
    kernel = f"rtl:{LARGER}"
    raw, clocks = counted(lambda: wirepress.decompress(frame, engine=kernel, threads=1))
    coded, encoder_clocks = counted(
        lambda: wirepress.compress(data, codec, engine=kernel, block_size=BLOCKS[codec], threads=1)
    )
    on_cores = clocks > 0 and encoder_clocks > 0
    if not on_cores or raw != data or bytes(wirepress.decompress(coded, engine="cpu")) != data:
        raise SystemExit(f"{name}: {codec} on the larger cores gives other bytes")
    return {"clocks_16": clocks, "more": {"encoder_frame_bytes": len(coded),
                                          "encoder_clocks": encoder_clocks}}  # fmt: skip


def measured(name: str, data: bytes, codec: str) -> dict[str, Any]:
    options = {"block_size": BLOCKS[codec], "threads": 1}
    frame = bytes(wirepress.compress(data, codec, engine="cpu", **options))
    raw, clocks = counted(lambda: wirepress.decompress(frame, engine="rtl", threads=1))
    row = {"file": name, "codec": codec, "bytes": len(data), "frame_bytes": len(frame),
           "clocks": clocks}  # fmt: skip
    if codec in ("lz4", "snappy"):
        row |= larger_build(name, data, codec, frame)
    coded, encoder_clocks = counted(
        lambda: wirepress.compress(data, codec, engine="rtl", **options)
    )
    if encoder_clocks > 0:  # the library encodes where there is no core
        row |= {"encoder_frame_bytes": len(coded), "encoder_clocks": encoder_clocks}
    if clocks == 0 or raw != data or bytes(wirepress.decompress(coded, engine="cpu")) != data:
        raise SystemExit(f"{name}: {codec} on the core gives other bytes")
    if codec in LARGE:
        row["large"] = large(data, codec)
    return row


def count(folder: Path, limit: int) -> None:
    rows = []
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        name = path.name.removesuffix(".zst")
        if name in AIMS:
            data = silesia.unpacked(path)[: limit << 20]
            rows += [measured(name, data, codec) for codec in BLOCKS]
    rows.sort(key=lambda row: row["codec"])
    results.write("lz_cores", {"block_sizes": BLOCKS, "limit_mib": limit, "rows": rows})


def speed(path: Path, limit: int) -> None:
    """Clocks that a second of the processor simulates, in turns; the best of five."""
    data = silesia.unpacked(path)[: limit << 20]
    rows = []
    for codec in ("lz4", "snappy", "zstd:1"):
        frame = bytes(wirepress.compress(data, codec, block_size=BLOCKS[codec], threads=1))
        ways: dict[str, Callable[[], Any]] = {
            "decode": lambda frame=frame: wirepress.decompress(frame, engine="rtl", threads=1),
            "encode": lambda codec=codec: wirepress.compress(
                data, codec, engine="rtl", block_size=BLOCKS[codec], threads=1
            ),
        }
        best = dict.fromkeys(ways, 0.0)
        for way, work in [*ways.items()] * 5:
            start = time.process_time()
            _, clocks = counted(work)
            best[way] = max(best[way], clocks / (time.process_time() - start))
        rows += [{"codec": codec, "way": way, "clocks_a_second": rate}
                 for way, rate in best.items()]  # fmt: skip
    about = {"file": path.name.removesuffix(".zst"), "limit_mib": limit, "rows": rows}
    results.write("rtl_speed", about)


def speed_cells() -> list[tuple[str, ...]]:
    rows = json.loads((results.FOLDER / "rtl_speed.json").read_text())["rows"]
    return [(row["codec"], row["way"], f"{row['clocks_a_second'] / 1e6:.2f}",
             ("-" if row["codec"] != "lz4" else "1" if row["clocks_a_second"] >= 1e6
              else "1, missed")) for row in rows]  # fmt: skip


def decoder_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those with 8 bytes a clock, and those with 16."""
    wide = [row | {"clocks": row["clocks_16"], "path": 16} for row in rows if "clocks_16" in row]
    return sorted([row | {"path": 8} for row in rows] + wide,
                  key=lambda row: (row["codec"], row["path"], row["file"]))  # fmt: skip


def aim(row: dict[str, Any]) -> float:
    if row["path"] == 16:
        return AIMS_16[row["file"]]
    return AIMS[row["file"]] if row["codec"] == "lz4" else 6.5 if row["codec"] == "snappy" else 4


def decoder_cells(row: dict[str, Any]) -> tuple[str, ...]:
    rate = row["bytes"] / row["clocks"]
    return (row["codec"], str(row["path"]), row["file"], str(row["bytes"]),
            f"{row['bytes'] / row['frame_bytes']:.2f}", str(row["clocks"]), f"{rate:.2f}",
            f"{aim(row):g}" + ("" if rate >= aim(row) else ", missed"))  # fmt: skip


def encoder_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of a packet a block, those of five distances, and those of larger blocks."""
    found = []
    for row in rows:
        about = {"block": BLOCKS[row["codec"]], "distances": 2 if "more" in row else 5}
        if "encoder_clocks" in row:
            found.append(row | about)
        if "more" in row:
            found.append(row | about | row["more"] | {"distances": 5})
        if "large" in row:
            found.append(row | about | row["large"] | {"block": LARGE[row["codec"]]})
    return sorted(found, key=lambda row: (row["codec"], row["block"], row["distances"]))


def zstd_misses(rows: list[dict[str, Any]], missed: Callable[[dict[str, Any]], bool]) -> str:
    """Files, with their blocks, that miss an aim of the zstd encoder."""
    names = [f"{row['file']} in {row['block']}" for row in encoder_rows(rows)
             if row["codec"].startswith("zstd") and missed(row)]  # fmt: skip
    return ", ".join(names) or "none"


def encoder_cells(row: dict[str, Any]) -> tuple[str, ...]:
    library, core = row["bytes"] / row["frame_bytes"], row["bytes"] / row["encoder_frame_bytes"]
    return (row["codec"], row["block"], str(row["distances"]), row["file"],
            str(row["encoder_clocks"]),
            f"{row['bytes'] / row['encoder_clocks']:.2f}", f"{core:.3f}", f"{library:.3f}",
            f"{100 * (core / library - 1):+.1f} %")  # fmt: skip


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = (heads, ("---",) * len(heads), *rows)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def mean_rate(rows: list[dict[str, Any]], codec: str) -> float:
    return statistics.fmean(row["bytes"] / row["clocks"] for row in rows if row["codec"] == codec)


def ratio_off(row: dict[str, Any]) -> float:
    """By how much the core's ratio is above the library's."""
    return row["frame_bytes"] / row["encoder_frame_bytes"] - 1


def aims(rows: list[dict[str, Any]]) -> str:
    """What the cores are to reach as a whole; the files that miss an aim are named."""
    area = {row["name"]: row for row in json.loads(AREA.read_text())["rows"]}
    found: list[tuple[str, ...]] = []

    def add(core: str, what: str, bound: str, measured: str, met: bool) -> None:
        found.append((core, what, bound, measured, "yes" if met else "**no**"))

    def of_files(core: str, what: str, bound: str, of: list[dict[str, Any]], missed: Any) -> None:
        misses = [row["file"] for row in of if missed(row)]
        text = f"{len(of) - len(misses)} of {len(of)} files" + (
            f", not {', '.join(misses)}" if misses else ""
        )
        add(core, what, bound, text, not misses)

    def at_most(core: str, key: str, bound: float, name: str) -> None:
        add(core, name, f"at most {bound:g}", f"{area[core][key]:g}", area[core][key] <= bound)

    for codec in ("lz4", "snappy"):
        for path, core, luts in ((8, f"{codec} decoder", 8000),
                                 (16, f"{codec} decoder, 16 bytes", 20000)):  # fmt: skip
            of = [row for row in decoder_rows(rows) if (row["codec"], row["path"]) == (codec, path)]
            of_files(core, "bytes a clock", "by file, above", of,
                     lambda row: row["bytes"] / row["clocks"] < aim(row))  # fmt: skip
            at_most(core, "lut", luts, "LUT")
            if path == 8:
                at_most(core, "bram", 16, "BRAM")
            at_most(core, "depth", 7, "levels of logic")
        for distances, core, luts in ((2, f"{codec} encoder", 12000),
                                      (5, f"{codec} encoder, five distances", 30000)):  # fmt: skip
            of = [row for row in encoder_rows(rows)
                  if (row["codec"], row["distances"]) == (codec, distances)]  # fmt: skip
            of_files(core, "bytes a clock", "8: 7.9 with a packet's ends", of,
                     lambda row: row["bytes"] / row["encoder_clocks"] < 7.9)  # fmt: skip
            if codec == "lz4":
                of_files(
                    core, "ratio by `lz4 -1`", "-3 %, xml -14 %", of,
                    lambda row: ratio_off(row) < RATIO_AIMS.get(row["file"], -0.03)
                )  # fmt: skip
            at_most(core, "lut", luts, "LUT")
            at_most(core, "depth", 7, "levels of logic")
    core = "zstd decoder, window 128 KiB"
    of = [row for row in rows if row["codec"].startswith("zstd")]
    slowest = min(row["bytes"] / row["clocks"] for row in of)
    mean = min(mean_rate(rows, f"zstd:{level}") for level in (1, 3))
    add(core, "bytes a clock, mean", "4", f"{mean:.2f}", mean >= 4)
    add(core, "bytes a clock, least", "3.3", f"{slowest:.2f}", slowest >= 3.3)
    at_most(core, "lut", 25000, "LUT")
    at_most(core, "depth", 7, "levels of logic")
    for block in ("128KiB", "4MiB"):
        of = [row for row in encoder_rows(rows)
              if row["codec"].startswith("zstd") and row["block"] == block]  # fmt: skip
        of_files("zstd encoder", f"bytes a clock, packets of {block}", "4", of,
                 lambda row: row["bytes"] / row["encoder_clocks"] < 4)  # fmt: skip
        of_files("zstd encoder", f"ratio by `zstd -1`, packets of {block}", "0.9", of,
                 lambda row: ratio_off(row) < -0.1)  # fmt: skip
    at_most("zstd encoder", "lut", 40000, "LUT")
    at_most("zstd encoder", "depth", 7, "levels of logic")
    return table(("core", "what", "aim", "measured", "met"), found)


def picture(rows: list[dict[str, Any]]) -> str:
    """Bars of the rates, both ways, and the decoders' aims as lines across them."""
    step, scale = 18, 25
    texts, y = [], 20
    for row in decoder_rows(rows):
        label = f"{row['codec']} {row['file']}" + (", 16 bytes" if row["path"] == 16 else "")
        texts.append(f'<text x="150" y="{y + 12}" text-anchor="end">{label}</text>')
        ways = [("clocks", "#4477aa")] + [("encoder_clocks", "#ccbb44")] * (row["path"] == 8)
        for k, (clocks, color) in enumerate(ways):
            size = row["bytes"] / row[clocks] * scale if clocks in row else 0
            texts.append(
                f'<rect x="160" y="{y + 8 * k}" width="{size:.1f}" height="7" fill="{color}"/>'
            )
        x = 160 + scale * aim(row)
        texts.append(f'<path d="M{x:g} {y - 1}v9" stroke="#aa3377" stroke-width="2"/>')
        y += step
    for size in (8, 16):
        x = 160 + scale * size
        texts.append(f'<path d="M{x} 14V{y}" stroke="#bbb"/>')
        texts.append(f'<text x="{x}" y="11" text-anchor="middle">{size} bytes a clock</text>')
    texts.append(f'<text x="160" y="{y + 14}">blue: decoder; red: its aim; yellow: encoder</text>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{y + 24}" '
            'font-family="sans-serif" font-size="11">'
            '<rect width="100%" height="100%" fill="white"/>' + "".join(texts)
            + "</svg>\n")  # fmt: skip


def page() -> None:
    raw = json.loads((results.FOLDER / "lz_cores.json").read_text())
    decoders = table(("codec", "path", "file", "bytes", "ratio", "clocks", "bytes a clock", "aim"),
                     [decoder_cells(row) for row in decoder_rows(raw["rows"])])  # fmt: skip
    heads = ("codec", "blocks", "distances", "file", "clocks", "bytes a clock", "ratio", "library",
             "difference")  # fmt: skip
    encoders = table(heads, [encoder_cells(row) for row in encoder_rows(raw["rows"])])
    misses = {
        "slow": zstd_misses(raw["rows"], lambda row: row["bytes"] / row["encoder_clocks"] < 4),
        "large": zstd_misses(
            raw["rows"], lambda row: row["encoder_frame_bytes"] > row["frame_bytes"] / 0.9
        ),
    }
    means = {f"zstd_{level}": mean_rate(raw["rows"], f"zstd:{level}") for level in (1, 3)}
    texts = {"decoders": decoders, "encoders": encoders, "aims": aims(raw["rows"])}
    simulated = json.loads((results.FOLDER / "rtl_speed.json").read_text())
    texts["speeds"] = table(("codec", "way", "million clocks a second", "aim"), speed_cells())
    texts["long"] = rtl_long.ran("zstd", "The decoder read libzstd's frames in long runs")
    texts |= {"speed_command": simulated["command"], "speed_date": simulated["date"],
              "speed_of": f"the first {simulated['limit_mib']} MiB of {simulated['file']}",
              "cpu": simulated["machine"]["cpu"]}  # fmt: skip
    PAGE.write_text(TEXT.format(**texts, **means, **misses, **raw))
    PAGE.with_suffix(".svg").write_text(picture(raw["rows"]))


TEXT = """# LZ cores on an FPGA

Bytes a clock and ratios of the cores of [`rtl/lz`](../rtl/lz/README.md) and
[`rtl/zstd`](../rtl/zstd/README.md), counted in simulation.

![bytes a clock of each core by file](fpga-lz.svg)

## Decoders

{decoders}
The ratio is that of the library's frame, which the core reads. The path is bytes a clock at most,
and of a beat.

With a path of 8 bytes the aims are what one sequence a clock allows, with literals and matches side
by side; for snappy, what two elements a clock allow. A clock of the decoder of lz4 makes literals,
a match and the literals behind it, but nothing of another match: it reads the history once. That
of snappy reads it twice in two clocks of three; in the third the second port writes. By a model,
history stored twice would give 7.5 to 7.9 bytes a clock of these files, and second matches in every
other clock 6.2 to 7.4.

With a path of 16 bytes both parsers take two sequences or elements a clock, and the history is
stored twice, so that a clock makes two of them. What has more than 16 bytes is cut before, and
nothing is cut to fill a clock: two neighbours share one where both fit. That, and not the parser,
is what limits files of long matches.

A block of zstd is a frame, hence a packet of its own here. The aim is one of the mean of all files,
which is {zstd_1:.2f} at level 1 and {zstd_3:.2f} at level 3. The core makes the literals of a block
while it executes the sequences of the one before. A packet of one block has none before, and waits
for its code, its tables and its first literals.

{long}
## Encoders

{encoders}
The ratio of the core stands beside that of the library (`lz4 -1`, snappy) in blocks of the same
size. The library reads what the core codes. A match, however long, never slows an encoder. The
encoders of lz4 and snappy come in two sizes, whose matchers compare two distances of a window of 8
bytes, or five (`More = 1`; `engine=rtl:verilator16`).

The encoder of zstd codes a block of 64 KiB while the next one comes. Alone in its packet, a block
waits for all of its bytes, its tree and its tables first: so packets of 4 MiB are there, too, where
the library looks back 512 KiB and more and the core 64 KiB. The aims are 4 bytes a clock (missed:
{slow}) and 0.9 of the ratio of `zstd -1` (missed: {large}).

## Aims

{aims}
Seven levels of logic are the class of 250 MHz; areas and levels are those of [the
table](results/fpga-area.md), before place and route. The first byte leaves a decoder of lz4 20
clocks behind the first beat, and was to leave it within 40. The aims of ratio were set for an
encoder of 30,000 LUTs, which that of five distances is. One of 4 bytes a clock in 12,000 LUTs was
an aim, too: that of two distances has fewer, and 8 bytes.

## Speed of the simulation

{speeds}
Clocks that the engine `rtl` takes in a second of one core ({cpu}), of {speed_of}:
`{speed_command}` ({speed_date}, [raw](../bench/results/rtl_speed.json)).
The machine is shared: four runs in five minutes gave 0.54 to 0.77 for the encoder of lz4. The
matcher has since lost a level of logic, and its simulation some speed: by turns, 507,374 clocks of
the encoder of lz4 took 1.11 to 1.33 seconds, and 1.05 to 1.09 before (2026-11-29, no raw file).

## How they were measured

    {command}
    python3 bench/lz_cores.py --page

counted the clocks ({date}, [raw](../bench/results/lz_cores.json))
and wrote this page. The files are the first {limit_mib} MiB of files of the Silesia corpus, in
blocks of 64 KiB, for zstd of 128 KiB. Neither side pauses, and a packet's first and last clocks
count: an encoder of lz4 or snappy takes 48 clocks more than its bytes, of which the next packet may
have all but two. Areas and clock rates stand in [the table](results/fpga-area.md).
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--speed", action="store_true", help="of the simulation, on a FILE")
    parser.add_argument("--limit", type=int, default=6, help="MiB of each file (6)")
    parser.add_argument(
        "--page", action="store_true", help="writes docs/fpga-lz.md and its picture"
    )
    args = parser.parse_args()
    if args.page == (args.folder is not None):
        parser.error("either FOLDER or --page")
    if args.page:
        page()
    elif args.speed:
        speed(args.folder, args.limit)
    else:
        count(args.folder, args.limit)


if __name__ == "__main__":
    main()
