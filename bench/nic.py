#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables 5 and 6 of SqueezeNIC, simulated: throughput of two NIC boxes by packet size and ratio,
and of lanes from a host that is faster than the wire, with their area.

    bench/nic.py [--packets 200] [--only 5] [--codecs lz4 zfp] [--page]

Runs `scripts/rtl nic` (of build/dev), prints both tables, writes bench/results/nic.json, the tables
of docs/results/fpga-nic.md and sim/engines/nic.toml. Areas are those of
bench/results/rtl_area.json, which `scripts/rtl area --write` measures. What is counted is clocks,
so the machine does not matter. With --codecs it renews these codecs' rows of nic_codecs.json (with
--only those of one table) and its tables of the page; with --page the tables alone, with the areas
as they are now.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import results

from wirepress.sim import engine_files

PAGE = results.ROOT / "docs" / "results" / "fpga-nic.md"
ENGINE = results.ROOT / "sim" / "engines" / "nic.toml"
AREA = results.FOLDER / "rtl_area.json"
HEADERS, OVERHEAD, PREFIX = 42, 24, 24  # of a packet; on the wire beside it; of a frame
CLOCK = 250e6
# The paper's sizes, and the next ones below whose payload is whole float32 values.
SIZES = {308: 306, 1076: 1074, 1518: 1518}
TBQ = "tbq:tau=1,of=one"
JUMBO = 9018
MODEL = engine_files.load("squeezenic")
PAPER5 = {int(row[0]): [float(value) for value in row[1:]] for row in MODEL.tables["5"]["rows"]}
PAPER6 = {int(row[0]): row[1:] for row in MODEL.tables["6"]["rows"]}
LUTS = MODEL.capacity["luts"]
ENGINE_HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Made by bench/nic.py; do not edit.
title = "a NIC with the box of rtl/nic, simulated at 250 MHz"
kind = "fpga"
device = "none: clocks of a simulation, areas before place and route for UltraScale+"
source = "bench/results/nic.json, bench/results/rtl_area.json"
capacity = {{ luts = {capacity:.0f} }}  # of an Alveo U280
"""
CODEC = """\
[codec.{name}]
recipe = "{recipe}"
lossless = false
ratio = {code_ratio:.2f}
ratio_data = "made for this ratio (docs/results/fpga-nic.md)"
compress = {{ rate = "{gbps_without_wire:.2f} Gbps", engines = 1, clock = "250 MHz" }}
decompress = {{ rate = "{gbps_without_wire:.2f} Gbps", engines = 1, clock = "250 MHz" }}
"""


def simulated(*options: str) -> dict[str, Any]:
    """The only row of a run of nic_pair."""
    with tempfile.NamedTemporaryFile() as file:
        command = [results.ROOT / "scripts" / "rtl", "nic", "--json", file.name, *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"nic: {done.stdout}{done.stderr}")
        (row,) = json.loads(Path(file.name).read_text())["rows"]
    return row


# Of zfp in one dimension, whose smallest code has 3 bits a value (with whole rates).
RATES = {2: 16, 8: 4, 32: 3}
# Of the data kind, for lz4: copies for 2, repeats for 8 and 32, by size of the packet.
LZ4_PARTS = {
    (306, 2): 0.81, (1074, 2): 0.72, (1518, 2): 0.71,
    (306, 8): 0.08, (1074, 8): 0.11, (1518, 8): 0.115,
    (306, 32): 0.004, (1074, 32): 0.017, (1518, 32): 0.02,
}  # fmt: skip


# Of rtl_area.json, and what each does in a clock.
RATE = {
    "NIC box with zfp, 1-D": "16 values, each way",
    "zfp encoder, 1-D, integer rates to 16": "16 values",
    "zfp encoder, 1-D, all modes": "16 values",
    "zfp encoder, 2-D, integer rates to 8": "16 values",
    "zfp encoder, 2-D, integer rates to 16": "16 values",
    "zfp encoder, 2-D, all modes": "16 values",
    "zfp encoder, 3-D, all modes": "16 values",
    "zfp decoder, 1-D, integer rates to 16": "16 values",
    "zfp decoder, 2-D, integer rates to 8": "16 values",
    "zfp decoder, 2-D, integer rates to 16": "16 values",
    "zfp decoder, 3-D, rates to 16": "16 values",
    "zfp decoder, 3-D, all modes": "16 values",
}
BOXES = ("NIC box, without codecs", "NIC box with tbq", "NIC box with zfp, 1-D",
         "NIC box with lz4, 1 encoder, 1 decoder")  # fmt: skip
# Recipe and data of lanes: about ten times smaller.
OF_LANES = {"lz4": ("lz4", "repeat:0.1"), "zfp": ("zfp:rate=3", "wave")}
ENGINES_OF_A_LANE = 8  # of lz4


def setting(codec: str, ratio: int, size: int) -> tuple[str, ...]:
    """Codec and data, for codes so many times smaller than the payload of a packet of that size."""
    if codec == "zfp":
        return ("--recipe", f"zfp:rate={RATES[ratio]}", "--data", "wave")
    if codec == "lz4":
        kind = "copies" if ratio == 2 else "repeat"
        return ("--recipe", "lz4", "--data", f"{kind}:{LZ4_PARTS[size, ratio]}")
    if ratio == 0:
        return ("--off", "--data", "noise")
    if ratio == 2:  # 16 bits a value: 13 of mantissa, sign, one exponent
        return ("--recipe", "fre:m=13", "--data", "even")
    if ratio == 8:  # 2 bits where a value is the one before, else 9
        return ("--recipe", "fre:m=6", "--data", f"even:{5 / 7:.4f}")
    values = (size - HEADERS) // 4  # 16 bits for each that is not 0, and 32 a packet
    return ("--recipe", TBQ, "--data", f"sparse:{(1 - 32 / values) / 16:.4f}")


def ratio_of(flow: dict[str, Any]) -> float:
    return flow["coded_bytes"] / flow["code_bytes"] if flow["code_bytes"] else 0.0


def codec_of(ratio: int) -> str:
    return {0: "none", 32: "tbq"}.get(ratio, "fre")


def table_5(packets: int, codecs: list[str] | None = None) -> Iterable[dict[str, Any]]:
    """codecs: in place of fre and tbq, which are made for these ratios."""
    for ratio, papers in PAPER5.items():
        for codec in codecs or [codec_of(ratio)]:
            if codec != "none" and ratio == 0 and codecs:
                continue
            yield from cells_5(codec, ratio, papers, packets)


def cells_5(codec: str, ratio: int, papers: list[float], packets: int) -> Iterable[dict[str, Any]]:
    for (size, ours), paper in zip(SIZES.items(), papers, strict=True):
        options = [*setting(codec, ratio, ours), "--sizes", str(ours), "--packets", str(packets)]
        row: dict[str, Any] = {
                "table": 5, "codec": codec, "size": size, "our_size": ours, "ratio": ratio,
                "packets": packets,
            }  # fmt: skip
        for name, line in (("gbps", "100"), ("gbps_without_wire", "0")):
            flows = simulated(*options, "--other", "0", "--line", line)["flows"]
            row[name] = min(flow["gbps"] for flow in flows)
            row |= {"code_ratio": ratio_of(flows[0]), "first_clocks": flows[0]["first_clocks"]}
        yield row | {"paper_gbps": paper}


def part_of(lanes: int) -> float:
    """Values that are not 0, for a packet of JUMBO bytes `lanes` times smaller on the wire."""
    room = (JUMBO + OVERHEAD) / lanes - OVERHEAD - HEADERS - PREFIX - 4
    return min(0.5, 0.9 * room / 2 / ((JUMBO - HEADERS) // 4))


def areas() -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in json.loads(AREA.read_text())["rows"]}


def lane_area(lanes: int, key: str) -> float:
    """On the line through 1 and 2 lanes, which are measured."""
    one, two = (areas()[f"NIC lanes with tbq, {n}"][key] for n in (1, 2))
    return one + (lanes - 1) * (two - one)


def lanes_of(lanes: int, packets: int, recipe: str, data: str) -> dict[str, Any]:
    """Throughput of so many lanes to a wire of 100 Gb/s."""
    (flow, _) = simulated(
        *("--lanes", str(lanes), "--recipe", recipe, "--data", data),
        *("--sizes", str(JUMBO), "--packets", str(max(8, packets // 8) * lanes)),
        *("--other", "0", "--line", "100"),
    )["flows"]
    # Of the whole run: the first packets of all lanes arrive together.
    flow["gbps"] = flow["host_bytes"] * 8 * CLOCK / flow["clocks"] / 1e9
    on_wire = flow["wire_bytes"] + OVERHEAD * flow["sent"]
    return {
        "table": 6, "host_gbps": 100 * lanes, "lanes": lanes, "packets": flow["sent"],
        "gbps": flow["gbps"],
        "wire_gbps": flow["gbps"] * on_wire / flow["host_bytes"],
        "wire_ratio": flow["host_bytes"] / flow["wire_bytes"], "code_ratio": ratio_of(flow),
    }  # fmt: skip


def table_6(packets: int) -> Iterable[dict[str, Any]]:
    for rate, (lut, ff, _) in PAPER6.items():
        lanes = rate // 100
        row = lanes_of(lanes, packets, TBQ, f"sparse:{part_of(lanes):.5f}")
        yield row | {"paper_lut_percent": lut, "paper_ff_percent": ff}


def with_areas(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of table 6, with the areas as they are now."""
    return [
        row | {key: lane_area(row["lanes"], key) for key in ("lut", "ff", "bram")}
        for row in rows
        if row["table"] == 6
    ]


def reason(row: dict[str, Any]) -> str:
    if abs(row["gbps"] / row["paper_gbps"] - 1) <= 0.1:
        return ""
    if row["size"] < 1518:
        return "their host, 3 to 5 million packets a second"
    return "codes leave room on the wire, so the host can send faster than it"


def text_codecs(rows: list[dict[str, Any]]) -> str:
    """Table 5 with other codecs, whose smallest codes may be larger than the paper's."""
    lines = [
        "| codec | packet, bytes | ratio, paper | of our codes | paper, Gb/s | ours, Gb/s | "
        "without the wire's limit | million packets a second | clocks to the first beat |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(rows, key=lambda row: (row["codec"], row["size"], row["ratio"])):
        lines.append(
            f"| {row['codec']} | {row['size']} ({row['our_size']}) | {row['ratio']} | "
            f"{row['code_ratio']:.1f} | {row['paper_gbps']:.2f} | {row['gbps']:.2f} | "
            f"{row['gbps_without_wire']:.2f} | {row['gbps'] * 1e3 / 8 / row['our_size']:.1f} | "
            f"{row['first_clocks']} |"
        )
    return "\n".join(lines)


def text_5(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| packet, bytes | ratio, paper | of our codes | paper, Gb/s | ours, Gb/s | deviation | "
        "ours without the wire's limit | million packets a second | reason |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for row in sorted(rows, key=lambda row: (row["size"], row["ratio"])):
        deviation = 100 * (row["gbps"] / row["paper_gbps"] - 1)
        packets = row["gbps"] * 1e3 / 8 / row["our_size"]
        lines.append(
            f"| {row['size']} ({row['our_size']}) | {row['ratio']} | {row['code_ratio']:.1f} | "
            f"{row['paper_gbps']:.2f} | {row['gbps']:.2f} | {deviation:+.0f} % | "
            f"{row['gbps_without_wire']:.2f} | {packets:.1f} | {reason(row)} |"
        )
    return "\n".join(lines)


def text_6(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| host side, Gb/s | lanes | ours, Gb/s | on the wire, Gb/s | ratio, whole packets | "
        "LUT, thousand | BRAM | % of a U280's LUT | paper, % LUT | "
        "LUT above 400 Gb/s, thousand: ours, paper |",
        "|---:" * 10 + "|",
    ]
    rows = with_areas(rows)
    first = min(rows, key=lambda row: row["lanes"])
    for row in rows:
        more = (row["lut"] - first["lut"]) / 1e3
        theirs = (row["paper_lut_percent"] - first["paper_lut_percent"]) / 100 * LUTS / 1e3
        lines.append(
            f"| {row['host_gbps']} | {row['lanes']} | {row['gbps']:.0f} | {row['wire_gbps']:.1f} | "
            f"{row['wire_ratio']:.1f} | {row['lut'] / 1e3:.0f} | {row['bram']:.0f} | "
            f"{100 * row['lut'] / LUTS:.1f} | {row['paper_lut_percent']:.2f} | "
            f"{more:.0f}, {theirs:.0f} |"
        )
    return "\n".join(lines)


def engine(measured: dict[str, Any]) -> str:
    """The engine model of a box, with what was measured as tables."""
    five = {(row["ratio"], row["size"]): row for row in measured["rows"] if row["table"] == 5}
    sizes = sorted({size for _, size in five})
    ratios = sorted({ratio for ratio, _ in five})
    lines = [
        ENGINE_HEAD.format(capacity=LUTS),
        *(
            CODEC.format(name=name, recipe=recipe, **five[ratio, max(sizes)])
            for name, recipe, ratio in (("fre", "fre:m=6", 8), ("tbq", TBQ, 32))
        ),
        '[[table]]\nid = "5"\ntitle = "host to host through two boxes and 100 Gb/s Ethernet, Gb/s, '
        'by compression ratio and packet size"',
        "columns = " + json.dumps(["ratio", *(f"{size} B" for size in sizes)]),
        "rows = [",
        *(
            f"  {json.dumps([ratio, *(round(five[ratio, size]['gbps'], 2) for size in sizes)])},"
            for ratio in ratios
        ),
        ']\n\n[[table]]\nid = "6"\ntitle = "lanes to one wire of 100 Gb/s, by host rate in Gb/s"',
        'columns = ["host Gb/s", "simulated Gb/s", "LUTs", "FFs"]',
        "rows = [",
    ]
    for row in with_areas(measured["rows"]):
        numbers = [row["host_gbps"], round(row["gbps"], 1), round(row["lut"]), round(row["ff"])]
        lines.append(f"  {json.dumps(numbers)},")
    return "\n".join([*lines, "]"]) + "\n"


def codec_lane_area(codec: str, lanes: int, key: str) -> float | None:
    """Of a measured lane of that codec (lz4: with one encoder and with two), and of what joins two
    of them, which tbq's two lanes have. None: it was not measured."""
    found = areas()
    try:
        if codec == "lz4":
            one, two = (found[f"NIC lanes with lz4, 1, {n}"][key]
                        for n in ("one encoder", "two encoders"))  # fmt: skip
            lane = one + (ENGINES_OF_A_LANE - 1) * (two - one)
        else:
            lane = found[f"NIC lanes with {codec}, 1"][key]
    except KeyError:
        return None
    join = found["NIC lanes with tbq, 2"][key] - 2 * found["NIC lanes with tbq, 1"][key]
    return lanes * lane + (lanes - 1) * join


def text_codec_lanes(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| codec | host side, Gb/s | lanes | ours, Gb/s | on the wire, Gb/s | "
        "ratio, whole packets | LUT, thousand | BRAM | % of a U280's LUT |",
        "|---|" + "---:|" * 8,
    ]
    for row in sorted(rows, key=lambda row: (row["codec"], row["lanes"])):
        lut, bram = (codec_lane_area(row["codec"], row["lanes"], key) for key in ("lut", "bram"))
        area = ("- | - | -" if lut is None or bram is None
                else f"{lut / 1e3:.0f} | {bram:.0f} | {100 * lut / LUTS:.1f}")  # fmt: skip
        lines.append(
            f"| {row['codec']} | {row['host_gbps']} | {row['lanes']} | {row['gbps']:.0f} | "
            f"{row['wire_gbps']:.1f} | {row['wire_ratio']:.1f} | {area} |"
        )
    return "\n".join(lines)


def area_cells(row: dict[str, Any]) -> str:
    return f"{row['lut']} | {row['ff']} | {row['bram']:g} | {row['dsp']} | {row['depth']:g}"


def text_boxes() -> str:
    lines = ["| box, both directions | LUT | FF | BRAM | DSP | depth |", "|---|" + "---:|" * 5]
    for name in BOXES:
        if name in areas():
            lines.append(f"| {name} | {area_cells(areas()[name])} |")
    return "\n".join(lines)


def text_gcow(boxes: list[str]) -> str:
    """Table 4.1 of gCOW beside whole boxes and cores, which are of both directions or of one."""
    paper = engine_files.load("gcow").codecs["zfp"].compress.area
    lines = [
        "| | LUT | FF | BRAM | DSP | depth | a clock |",
        "|---|---:|---:|---:|---:|---:|---|",
        "| gCOW: encoder, all dimensions and modes (U250, placed) | "
        f"{paper['luts']:.0f} | {paper['ffs']:.0f} | {paper['brams']:g} | {paper['dsps']:.0f} | "
        "- | 12.5 values at best |",
    ]
    for name in boxes:
        if name in areas():
            lines.append(f"| {name} | {area_cells(areas()[name])} | {RATE[name]} |")
    return "\n".join(lines)


def text_gcow_rates() -> str:
    """Gb/s of float32 that the cores take and give at 250 MHz, by dimension and mode."""
    rows = json.loads((results.FOLDER / "zfp_cores.json").read_text())["rows"]
    cells: dict[tuple[str, str], list[str]] = {}
    for row in sorted(rows, key=lambda row: row["dimensions"]):
        for way in ("clocks", "clocks_decoding"):
            rate = row["values"] * 32 * CLOCK / row[way] / 1e9 if row[way] else 0
            cells.setdefault((row["data"], row["mode"]), []).append(f"{rate:.0f}" if rate else "-")
    lines = [
        "| data | mode | " + " | ".join(f"{n}-D encoder | {n}-D decoder" for n in (1, 2, 3)) + " |",
        "|---|---|" + "---:|" * 6,
        *(f"| {data} | {mode} | {' | '.join(found)} |" for (data, mode), found in cells.items()),
    ]
    return "\n".join(lines)


def other_codecs(codecs: list[str], packets: int, only: int | None, out: Path | None) -> None:
    tables = (only,) if only else (5, 6)
    rows = [
        row for row in read_codecs() if row["codec"] not in codecs or row["table"] not in tables
    ]
    if 5 in tables:
        rows += table_5(packets, codecs)
    if 6 in tables:
        rows += [{"codec": codec, **lanes_of(n, packets, *OF_LANES[codec])}
                 for codec in codecs for n in (4, 8, 16)]  # fmt: skip
    measured = {"clock_hz": CLOCK, "rows": rows}
    print(f"written: {results.write('nic_codecs', measured, out, simulator=verilator())}")
    if not out:
        put_codecs(rows)


def read_codecs() -> list[dict[str, Any]]:
    return json.loads((results.FOLDER / "nic_codecs.json").read_text())["rows"]


def renew_pages() -> None:
    """From the raw files, with the areas as they are now."""
    put_tables(json.loads((results.FOLDER / "nic.json").read_text()))
    put_codecs(read_codecs())


def put_tables(measured: dict[str, Any]) -> None:
    for number, text in ((5, text_5), (6, text_6)):
        rows = [row for row in measured["rows"] if row["table"] == number]
        results.put(PAGE, f"table {number}", text(rows), PAGE.read_text())
    ENGINE.write_text(engine(measured))


def put_codecs(rows: list[dict[str, Any]]) -> None:
    texts = {
        "table 5, lz4 and zfp": text_codecs([row for row in rows if row["table"] == 5]),
        "table 6, lz4 and zfp": text_codec_lanes([row for row in rows if row["table"] == 6]),
        "boxes": text_boxes(),
        "gcow": text_gcow(list(RATE)),
        "gcow rates": text_gcow_rates(),
    }
    for name, text in texts.items():
        results.put(PAGE, name, text, PAGE.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=200, help="of each cell and direction")
    parser.add_argument("--only", type=int, choices=(5, 6), help="one table, nothing is written")
    parser.add_argument("--out", type=Path, help="not bench/results/nic.json; no page is written")
    parser.add_argument(
        "--codecs", nargs="+", choices=("lz4", "zfp"), help="tables 5 and 6 with these alone"
    )
    parser.add_argument("--page", action="store_true", help="only the tables, from the raw files")
    args = parser.parse_args()
    if args.page:
        renew_pages()
        return
    if args.codecs:
        other_codecs(args.codecs, args.packets, args.only, args.out)
        return
    rows: list[dict[str, Any]] = []
    texts = {}
    for number, table, text in ((5, table_5, text_5), (6, table_6, text_6)):
        if args.only in (None, number):
            found = list(table(args.packets))
            rows += found
            texts[number] = text(found)
            print(texts[number], end="\n\n")
    if args.only:
        return
    measured = {"clock_hz": CLOCK, "packets": args.packets, "rows": rows}
    path = results.write("nic", measured, args.out, simulator=verilator())
    print(f"written: {path}")
    if not args.out:
        put_tables(measured)


def verilator() -> str:
    """The simulator's version, as its package says it: the program says none."""
    found = (results.ROOT / ".venv").glob("lib/python3*/site-packages/verilator-*.dist-info")
    return next((path.name.removesuffix(".dist-info") for path in found), "verilator")


if __name__ == "__main__":
    main()
