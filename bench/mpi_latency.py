#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the loaded library adds to an 8-byte message in shared memory.

Two ranks of one host, many short runs in turns without and with the library, which is active (each
rank has said that the others have it) and leaves every message to MPI. Minima over the runs are
near a quiet machine's; medians carry whatever else runs. Exit status 1 if the minimum grows by more
than 100 nanoseconds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from statistics import median

import results
from mpi_pingpong import BUILD, FLAVOURS, ROOT, environment, first_line, mpi_version

LIMIT_NS = 100.0


def build(mpi: str) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"mpi_latency.{mpi}"
    source = ROOT / "bench" / "mpi_latency.c"
    subprocess.run([f"mpicc.{mpi}", "-std=c11", "-O2", "-o", program, source], check=True)
    return program


def run(mpi: str, program: Path, library: Path | None, batches: int) -> tuple[float, float]:
    loaded = ["env", "WIREPRESS_MPI_TRUST=1", f"LD_PRELOAD={library}"] if library else []
    command = [f"mpirun.{mpi}", "-n", "2", *loaded, str(program), str(batches)]
    values = environment(None)
    values.pop("OMPI_MCA_mpi_yield_when_idle")  # each rank has a core
    done = subprocess.run(command, env=values, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f"mpi_latency: {' '.join(command)}\n{done.stdout}{done.stderr}")
    least, middle = done.stdout.split()
    return float(least), float(middle)


def measure(mpi: str, args: argparse.Namespace) -> bool:
    program, library = build(mpi), args.lib_dir / f"libwirepress_mpi_{mpi}.so"
    runs: dict[str, list[tuple[float, float]]] = {"plain": [], "with": []}
    for i in range(args.rounds):
        for kind in ("plain", "with") if i % 2 == 0 else ("with", "plain"):
            used = library if kind == "with" else None
            runs[kind].append(run(mpi, program, used, args.batches))
    least = {kind: min(r[0] for r in values) for kind, values in runs.items()}
    middle = {kind: median(r[1] for r in values) for kind, values in runs.items()}
    added = least["with"] - least["plain"]
    for name, pair in (("minimum", least), ("median", middle)):
        print(f"{mpi}: {name} {pair['plain']:.0f} -> {pair['with']:.0f} ns")
    compiler = first_line(f"mpicc.{mpi}", "--version")
    content = {"runs": runs, "minimum_ns": least, "median_ns": middle, "added_ns": added}
    results.write(f"mpi_latency-{mpi}", content, compiler=compiler, mpi=mpi_version(mpi))
    return added <= LIMIT_NS


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mpi", nargs="+", choices=FLAVOURS, default=FLAVOURS, metavar="X")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--batches", type=int, default=400)
    folder = ROOT / "build" / "dev" / "integrations" / "mpi"
    parser.add_argument("--lib-dir", type=Path, default=folder, help="where the libraries are")
    args = parser.parse_args()
    good = [measure(mpi, args) for mpi in args.mpi]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
