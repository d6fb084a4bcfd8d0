#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `wirepress run` adds to a job between its start and its end, and which part adds how much.

A job that does nothing (mpi_start.c), plain and under `wirepress run`, in turns. The medians of the
pairs' differences count: wall time, processor time of all processes, and rank 0's MPI_Init and
MPI_Finalize. Beside them a run of an empty launcher (what Python and the command take), of Python
alone, and the launcher's --version. Exit status 2 if a job costs more than 150 ms of processor
time, 1 if it takes more than that by the wall clock, which says nothing on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import results
from mpi_pingpong import BUILD, FLAVOURS, ROOT, environment, first_line, mpi_version

LIMIT_MS = 150.0
PARTS = ("wall", "cpu", "init", "barrier", "finalize")

Row = dict[str, float]


def build(mpi: str) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"mpi_start.{mpi}"
    source = ROOT / "bench" / "mpi_start.c"
    subprocess.run([f"mpicc.{mpi}", "-std=gnu99", "-O2", "-o", program, source], check=True)
    return program


def processor_ms() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def run(command: list[str], values: dict[str, str]) -> Row:
    """Milliseconds of a command, and those that its rank 0 printed."""
    cpu, began = processor_ms(), time.monotonic()
    done = subprocess.run(command, env=values, capture_output=True, text=True, timeout=300)
    row = {"wall": 1e3 * (time.monotonic() - began), "cpu": processor_ms() - cpu}
    if done.returncode:
        sys.exit(f"mpi_start: {' '.join(command)}\n{done.stdout}{done.stderr}")
    said = done.stdout.split()
    return row | dict(zip(PARTS[2:], map(float, said[:3]), strict=True)) if len(said) == 3 else row


def measure(mpi: str, args: argparse.Namespace) -> dict[str, float]:
    job = [f"mpirun.{mpi}", "-n", str(args.ranks), str(build(mpi))]
    wrapped = [str(args.wirepress), "run", "--quiet", "--", *job]
    empty = BUILD / "empty_launcher"
    empty.write_text("#!/bin/sh\n")
    empty.chmod(0o755)
    others = {
        "wirepress run of an empty launcher": [*wrapped[:3], "--mpi", mpi, "--", str(empty)],
        "python -c pass": [sys.executable, "-c", "pass"],
        f"mpirun.{mpi} --version": [job[0], "--version"],
    }
    values = environment(None) | {"WIREPRESS_LIB_DIR": str(args.lib_dir)}
    pairs: list[tuple[Row, Row]] = []
    parts: dict[str, list[Row]] = {name: [] for name in others}
    for i in range(args.rounds):
        order = (job, wrapped) if i % 2 == 0 else (wrapped, job)
        rows = [run(command, values) for command in order]
        pairs.append((rows[i % 2], rows[1 - i % 2]))
        for name, command in others.items():
            parts[name].append(run(command, values))
    added = {part: median(ours[part] - plain[part] for plain, ours in pairs) for part in PARTS}
    plain = {part: median(pair[0][part] for pair in pairs) for part in PARTS}
    print(f"{mpi}, {args.ranks} ranks, ms (median): of the plain job, and what wirepress adds")
    for part in PARTS:
        print(f"  {part:<10} {plain[part]:8.1f} {added[part]:+8.1f}")
    for name, rows in parts.items():
        wall, cpu = (median(row[part] for row in rows) for part in ("wall", "cpu"))
        print(f"  {name}: wall {wall:.1f}, cpu {cpu:.1f}")
    compiler = first_line(f"mpicc.{mpi}", "--version")
    content = {"ranks": args.ranks, "added_ms": added, "plain_ms": plain, "pairs": pairs,
               "parts": parts, "load": os.getloadavg()[0]}  # fmt: skip
    results.write(f"mpi_start-{mpi}", content, compiler=compiler, mpi=mpi_version(mpi))
    return added


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mpi", nargs="+", choices=FLAVOURS, default=FLAVOURS, metavar="X")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ranks", type=int, default=2)
    folder = ROOT / "build" / "dev" / "integrations" / "mpi"
    parser.add_argument("--lib-dir", type=Path, default=folder, help="where the libraries are")
    command = Path(sys.executable).with_name("wirepress")
    parser.add_argument("--wirepress", type=Path, default=command, help="the command to measure")
    args = parser.parse_args()
    added = [measure(mpi, args) for mpi in args.mpi]
    if any(job["cpu"] > LIMIT_MS for job in added):
        return 2
    return 1 if any(job["wall"] > LIMIT_MS for job in added) else 0


if __name__ == "__main__":
    sys.exit(main())
