#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PEDAL's figures 10 and 11: a file as a message between two of four hosts, and broadcast to all.

    bench/device_messages.py FOLDER [--link 1gbit]   writes bench/results/device_messages.json
    bench/device_messages.py --page     writes docs/results/device-messages.md from it

FOLDER holds xml of the Silesia corpus (.zst: unpacked first). The hosts are network namespaces
joined at a rate (tests/net, needs root), with one rank each. Jobs run in turns: plain MPI, and
zlib:1 on each engine. Of the rounds the fastest counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import results
import silesia
from mpi_pingpong import BUILD, environment, mpi_version, wirepress_run

sys.path.insert(0, str(results.ROOT / "tests" / "net"))
from hosts import Hosts, why_not

MPI = "openmpi"
HOSTS = 4
CODEC = "zlib:1"
BLOCK = "32KiB"  # the pieces of a message of this size are more than a driver's job
BLUEFIELD2 = "compressdev:virtual-bluefield2"
ENGINES = ("", "cpu:libdeflate", "cpu:isal", "compressdev:isal", BLUEFIELD2,
           "compressdev:virtual-bluefield3", f"cores+{BLUEFIELD2}")  # fmt: skip
MEASURES = ("init", "latency", "broadcast")
PAGE = results.ROOT / "docs" / "results" / "device-messages.md"


def build() -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"device_messages.{MPI}"
    source = results.ROOT / "bench" / "device_messages.c"
    subprocess.run([f"mpicc.{MPI}", "-std=gnu11", "-O2", "-o", program, source], check=True)
    return program


def run(hosts: Hosts, engine: str, file: Path, args: argparse.Namespace) -> dict[str, Any]:
    words = [*hosts.mpirun(MPI, 1), str(build()), str(file), str(args.repeats)]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        if engine:
            options = ["--quiet", "--codec", CODEC, "--report", str(report), "--"]
            words = [*wirepress_run(args.lib_dir), *options, *words]
        values = environment(args.lib_dir) | {"WIREPRESS_BLOCK_SIZE": BLOCK}
        strict = engine + "!" if "compressdev" in engine else engine  # without its device it ends
        values["WIREPRESS_ENGINE"] = strict or "auto"
        done = subprocess.run(hosts.on(0, words), env=values, capture_output=True, text=True,
                              timeout=300)  # fmt: skip
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or len(lines) != 1:
            raise SystemExit(f"device_messages: {engine}\n{done.stdout}{done.stderr}")
        row = json.loads(lines[0])
        if engine:
            said = json.loads(report.read_text())
            calls = [call for rank in said["ranks"] for call in rank["calls"].values()]
            row |= {name: sum(call.get(name, 0) for call in calls)
                    for name in ("device_bytes", "cores_bytes")}  # fmt: skip
            row["state"] = said["state"]
            row["rank_0"] = said["ranks"][0].get("engine", "")
        return row


def measure(folder: Path, args: argparse.Namespace) -> None:
    if reason := why_not():
        raise SystemExit(f"device_messages: {reason}")
    best: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as place, Hosts(HOSTS, args.link) as hosts:
        os.chmod(place, 0o755)
        packed = next(p for p in folder.iterdir() if p.name.removesuffix(".zst") == "xml")
        file = Path(place) / "xml"
        file.write_bytes(silesia.unpacked(packed))
        for _ in range(args.rounds):
            for engine in ENGINES:
                row = run(hosts, engine, file, args)
                known = best.setdefault(engine, {"engine": engine, **row})
                for name in MEASURES:
                    known[name] = min(known[name], row[name])
    measured = {
        "link": args.link,
        "hosts": HOSTS,
        "codec": CODEC,
        "mpi": mpi_version(MPI),
        "repeats": args.repeats,
        "rounds": args.rounds,
        "rows": list(best.values()),
    }
    results.write("device_messages", measured)


PAGE_TEXT = """# Messages that a device codes: four hosts

PEDAL's figures 10 (point to point) and 11 (broadcast to four nodes), as far as they can be had:
xml of the Silesia corpus ({size:.2f} MB) as one message, `{codec}`, blocks of 32 KiB, {hosts} hosts
in network namespaces with links of {link}, one rank each, {mpi}. Half a round trip, and a broadcast
until the last rank has it: medians of {repeats} after 30 others, the fastest of {rounds} rounds by
turns. All ranks share {cores} cores. `virtual` devices are not there: the cores' libraries do their
jobs, which are answered at the published rate, and remember them
([engine](../../engines/compressdev/README.md#virtual-devices)).

Machine: {machine}. Date: {date}.
Command: `{command}`. Raw:
[device_messages.json](../../bench/results/device_messages.json). Other programs ran meanwhile; the
ranks came before them (nice -20).

{table}

In parentheses: how many times as fast as plain MPI. `MPI_Init` pays the device's set-up. Megabytes
are raw ones of a whole job, coded and expanded, of all ranks: what the device did, and what the
cores did for it. The last two columns have a message with that set-up added, as where each message
initialises the device, and how many times as fast it is once: PEDAL's baseline, of which its
figures print to 88 times (latency) and 68 times (broadcast) on BlueField-2. Theirs includes memory
that is mapped for each message and a network of 100 Gb/s and more, so that the message itself is
shorter than here.

One thread codes an MPI message. With a device alone it waits for each block, and so the latency
is paid for every 32 KiB; with `cores+` it codes blocks itself meanwhile, and leaves the cores what
they expand faster than the device answers. Aim for `cores+`: no slower than 0.95 of the better of
both alone. Latency: {latency_of_better:.2f} times as fast as the better one; broadcast:
{broadcast_of_better:.2f}.
"""


def table(rows: list[dict[str, Any]]) -> str:
    plain = rows[0]
    columns = ("engine", "MPI_Init ms", "latency ms", "broadcast ms", "device MB", "cores MB",
               "with set-up ms", "once")  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        times = [f"{1e3 * row[name]:.1f} ({plain[name] / row[name]:.2f})"
                 for name in ("latency", "broadcast")]  # fmt: skip
        added = [" "] * 4
        if "compressdev" in row["engine"]:
            work = [f"{row[side] / 1e6:,.0f}" for side in ("device_bytes", "cores_bytes")]
            whole = row["latency"] + max(0.0, row["init"] - plain["init"])
            added = [*work, f"{1e3 * whole:.0f}", f"{whole / row['latency']:.1f}"]
        name = f"`{row['engine']}`" if row["engine"] else "plain MPI"
        cells = [name, f"{1e3 * row['init']:.0f}", *times, *added]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def of_better(rows: list[dict[str, Any]]) -> dict[str, float]:
    row = {row["engine"]: row for row in rows}
    alone = [row["cpu:libdeflate"], row[BLUEFIELD2]]
    return {f"{name}_of_better": min(one[name] for one in alone) / row[f"cores+{BLUEFIELD2}"][name]
            for name in ("latency", "broadcast")}  # fmt: skip


def page(raw: dict[str, Any]) -> str:
    about = {name: raw[name] for name in
             ("codec", "hosts", "link", "mpi", "repeats", "rounds", "date", "command")}  # fmt: skip
    return PAGE_TEXT.format(
        **about,
        **of_better(raw["rows"]),
        size=raw["rows"][0]["bytes"] / 1e6,
        cores=raw["machine"]["cores"],
        machine=", ".join(str(value) for value in raw["machine"].values()),
        table=table(raw["rows"]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--link", default="1gbit")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lib-dir", type=Path, help="a build's MPI module")
    parser.add_argument("--page", action="store_true")
    args = parser.parse_args()
    if args.page:
        PAGE.write_text(page(json.loads((results.FOLDER / "device_messages.json").read_text())))
    elif args.folder:
        measure(args.folder, args)
    else:
        parser.error("a folder with xml, or --page")


if __name__ == "__main__":
    main()
