#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it takes to compile each simulated core of the engine rtl, without a compiler cache.

    bench/rtl_compile.py [CORE...] [--build BUILD]

Each core (all by default) is verilated and compiled as the build does it, one after another, into a
folder that is thrown away. Counted is the processor's time, of one core of the machine: other work
makes it longer by what it takes of caches, not by its own. Renews the cores' rows in
bench/results/rtl_compile.json and the section of docs/results/fpga-area.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import results

RAW = results.FOLDER / "rtl_compile.json"
PAGE = results.ROOT / "docs" / "results" / "fpga-area.md"
AIM = 180  # seconds


def processor() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def seconds(command: str, build: Path) -> float:
    before = processor()
    subprocess.run(command, shell=True, check=True, cwd=build, capture_output=True,
                   env=os.environ | {"CCACHE_DISABLE": "1"})  # fmt: skip
    return processor() - before


def measured(core: str, target: str, build: Path) -> dict[str, Any]:
    said = subprocess.run(["ninja", "-C", build, "-t", "commands", target], check=True,
                          capture_output=True, text=True)  # fmt: skip
    made = build / "rtl" / core
    with tempfile.TemporaryDirectory() as folder:
        lines = [re.sub(rf"{re.escape(str(made))}(?!\w)", f"{folder}/{core}", line)
                 for line in said.stdout.splitlines() if str(made) in line]  # fmt: skip
        verilate, compile_it = lines
        compile_it = re.sub(r" -(o|MF) \S+", rf" -\1 {folder}/\1", compile_it)
        row = {"core": core, "verilator_seconds": seconds(verilate, build),
               "compiler_seconds": seconds(compile_it, build)}  # fmt: skip
        row["cpp_bytes"] = sum(path.stat().st_size for path in Path(folder, core).glob("*.cpp"))
    return row


def section(raw: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    def total(row: dict[str, Any]) -> float:
        return float(row["verilator_seconds"] + row["compiler_seconds"])

    lines = [f"| `{row['core']}` | {row['cpp_bytes'] / 1e6:.1f} | {row['verilator_seconds']:.1f} | "
             f"{row['compiler_seconds']:.0f} | {total(row):.0f} | "
             f"{AIM}{'' if total(row) <= AIM else ', missed'} |"
             for row in sorted(rows, key=total, reverse=True)]  # fmt: skip
    return "\n".join([
        "## Time to compile the simulations", "",
        "| core of engine `rtl` | C++, MB | Verilator, s | compiler, s | both | aim |",
        "| --- | --- | --- | --- | --- | --- |", *lines, "",
        f"`python3 bench/rtl_compile.py` ran what `make build` runs ({raw['compiler']}), without a",
        f"compiler cache: processor seconds of one core ({raw['machine']['cpu']}, {raw['date']},",
        "[raw](../../bench/results/rtl_compile.json)), beside other work.",
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cores", nargs="*", metavar="CORE", help="as build/dev/rtl names it")
    parser.add_argument("--build", type=Path, default=results.ROOT / "build" / "dev",
                        help="build/dev by default: its commands, run anew beside it")  # fmt: skip
    args = parser.parse_args()
    build = args.build.resolve()
    targets = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], check=True,
                             capture_output=True, text=True).stdout  # fmt: skip
    found = re.findall(r"^(codecs/\S*/core_(\w+)\.dir/\S*all\.cpp\.o):", targets, re.M)
    target_of = {core: target for target, core in found}
    if unknown := {*args.cores} - target_of.keys() or not target_of:
        parser.error(f"the build has no simulated core {unknown if args.cores else ''}")
    for core in args.cores or sorted(target_of):
        rows = json.loads(RAW.read_text())["rows"] if RAW.exists() else []
        rows = [row for row in rows if row["core"] != core]
        rows.append(measured(core, target_of[core], build))
        print(rows[-1], flush=True)
        rows.sort(key=lambda row: row["core"])
        results.write("rtl_compile", {"rows": rows}, compiler=results.compiler(build))
    raw = json.loads(RAW.read_text())
    results.put(PAGE, "compile times", section(raw, raw["rows"]), "")


if __name__ == "__main__":
    main()
