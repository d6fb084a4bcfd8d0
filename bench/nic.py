#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables 5 and 6 of SqueezeNIC, simulated: throughput of two NIC boxes by packet size and ratio,
and of lanes from a host that is faster than the wire, with their area.

    bench/nic.py [--packets 200] [--only 5]

Runs `scripts/rtl nic` (of build/dev), prints both tables, writes bench/results/nic.json, the tables
of docs/results/fpga-nic.md and sim/engines/nic.toml. Areas are those of
bench/results/rtl_area.json, which `scripts/rtl area --write` measures. What is counted is clocks,
so the machine does not matter.
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


def setting(ratio: int, size: int) -> tuple[str, ...]:
    """Codec and data, for codes so many times smaller than the payload of a packet of that size."""
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


def table_5(packets: int) -> Iterable[dict[str, Any]]:
    for ratio, papers in PAPER5.items():
        for (size, ours), paper in zip(SIZES.items(), papers, strict=True):
            options = [*setting(ratio, ours), "--sizes", str(ours), "--packets", str(packets)]
            row: dict[str, Any] = {"table": 5, "size": size, "our_size": ours, "ratio": ratio}
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


def table_6(packets: int) -> Iterable[dict[str, Any]]:
    for rate, (lut, ff, _) in PAPER6.items():
        lanes = rate // 100
        (flow, _) = simulated(
            *("--lanes", str(lanes), "--recipe", TBQ, "--data", f"sparse:{part_of(lanes):.5f}"),
            *("--sizes", str(JUMBO), "--packets", str(max(8, packets // 8) * lanes)),
            *("--other", "0", "--line", "100"),
        )["flows"]
        # Of the whole run: the first packets of all lanes arrive together.
        flow["gbps"] = flow["host_bytes"] * 8 * CLOCK / flow["clocks"] / 1e9
        on_wire = flow["wire_bytes"] + OVERHEAD * flow["sent"]
        yield {
            "table": 6, "host_gbps": rate, "lanes": lanes, "gbps": flow["gbps"],
            "wire_gbps": flow["gbps"] * on_wire / flow["host_bytes"],
            "wire_ratio": flow["host_bytes"] / flow["wire_bytes"], "code_ratio": ratio_of(flow),
            "lut": lane_area(lanes, "lut"), "ff": lane_area(lanes, "ff"),
            "bram": lane_area(lanes, "bram"),
            "paper_lut_percent": lut, "paper_ff_percent": ff,
        }  # fmt: skip


def reason(row: dict[str, Any]) -> str:
    if abs(row["gbps"] / row["paper_gbps"] - 1) <= 0.1:
        return ""
    if row["size"] < 1518:
        return "their host, 3 to 5 million packets a second"
    return "codes leave room on the wire, so the host can send faster than it"


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
    for row in measured["rows"]:
        if row["table"] == 6:
            numbers = [row["host_gbps"], round(row["gbps"], 1), round(row["lut"]), round(row["ff"])]
            lines.append(f"  {json.dumps(numbers)},")
    return "\n".join([*lines, "]"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packets", type=int, default=200, help="of each cell and direction")
    parser.add_argument("--only", type=int, choices=(5, 6), help="one table, nothing is written")
    parser.add_argument("--out", type=Path, help="not bench/results/nic.json; no page is written")
    args = parser.parse_args()
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
        for number, text in texts.items():
            results.put(PAGE, f"table {number}", text, PAGE.read_text())
        ENGINE.write_text(engine(measured))


def verilator() -> str:
    """The simulator's version, as its package says it: the program says none."""
    found = (results.ROOT / ".venv").glob("lib/python3*/site-packages/verilator-*.dist-info")
    return next((path.name.removesuffix(".dist-info") for path in found), "verilator")


if __name__ == "__main__":
    main()
