#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording a trace costs a job.

Two ranks of one host, the library loaded without compressing: runs in turns without a trace, with
one, and with samples. A job that computes 1 ms a step, exchanges 64 KiB with its neighbours and
sums 256 KiB (trace_job.c), and messages of 8 bytes (mpi_latency.c). Of the job the median of the
ratios of runs that followed each other counts; of the messages the minimum. Exit status 1 if the
job takes more than 2 % longer.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import results
from mpi_pingpong import BUILD, FLAVOURS, ROOT, environment, first_line, mpi_version

LIMIT = 1.02
KINDS = ("off", "trace", "samples")


def build(mpi: str, name: str) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"{name}.{mpi}"
    source = ROOT / "bench" / f"{name}.c"
    command = [f"mpicc.{mpi}", "-std=gnu11", "-O2"]
    command.append("-Wno-stringop-overflow")  # of MPICH's MPI_STATUSES_IGNORE
    subprocess.run([*command, "-o", program, source], check=True)
    return program


def run(mpi: str, words: list[str], library: Path, kind: str) -> tuple[list[float], int]:
    """The numbers that it prints, and the bytes of its traces."""
    folder = Path(tempfile.mkdtemp(prefix="wirepress-trace-"))
    mine = {"LD_PRELOAD": library, "WIREPRESS_MPI_TRUST": 1, "WIREPRESS_MPI_COMPRESS": "off"}
    if kind != "off":
        mine["WIREPRESS_MPI_TRACE"] = folder
    if kind == "samples":
        mine["WIREPRESS_MPI_TRACE_SAMPLE"] = "64MiB"
    settings = [f"{key}={value}" for key, value in mine.items()]
    values = environment(None)
    values.pop("OMPI_MCA_mpi_yield_when_idle")  # each rank has a core
    try:
        done = subprocess.run(
            [f"mpirun.{mpi}", "-n", "2", "env", *settings, *words],
            env=values, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        if done.returncode:
            sys.exit(f"trace_overhead: {' '.join(words)}\n{done.stdout}{done.stderr}")
        size = sum(path.stat().st_size for path in folder.iterdir())
    finally:
        shutil.rmtree(folder)
    return [float(word) for word in done.stdout.split()], size


def measure(mpi: str, args: argparse.Namespace) -> bool:
    library = args.lib_dir / f"libwirepress_mpi_{mpi}.so"
    job = [str(build(mpi, "trace_job")), str(args.steps), "1000"]
    latency = [str(build(mpi, "mpi_latency")), str(args.batches)]
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    least: dict[str, list[float]] = {kind: [] for kind in KINDS}
    sizes = dict.fromkeys(KINDS, 0)
    for i in range(args.rounds):
        for kind in KINDS if i % 2 == 0 else KINDS[::-1]:
            (took,), sizes[kind] = run(mpi, job, library, kind)
            seconds[kind].append(took)
            least[kind].append(run(mpi, latency, library, kind)[0][0])
    ratios = {
        kind: median(b / a for a, b in zip(seconds["off"], seconds[kind], strict=True))
        for kind in KINDS
    }
    ns = {kind: min(values) for kind, values in least.items()}
    each = sizes["trace"] / (2 * 11 * args.steps)  # a step: 7 calls and 4 completions
    print(
        f"{mpi}: the job {100 * (ratios['trace'] - 1):+.2f} % with a trace, "
        f"{100 * (ratios['samples'] - 1):+.2f} % with samples; {each:.1f} "
        f"bytes a record; 8 bytes {ns['off']:.0f} -> {ns['trace']:.0f} ns"
    )
    content = {"ratio": ratios, "seconds": seconds, "latency_ns": ns, "latencies_ns": least,
               "bytes_of_trace": sizes, "steps": args.steps}  # fmt: skip
    if not args.dry:
        compiler = first_line(f"mpicc.{mpi}", "--version")
        results.write(f"trace_overhead-{mpi}", content, compiler=compiler, mpi=mpi_version(mpi))
    return ratios["trace"] <= LIMIT


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mpi", nargs="+", choices=FLAVOURS, default=FLAVOURS, metavar="X")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batches", type=int, default=400)
    parser.add_argument("--dry", action="store_true", help="write no raw results")
    folder = ROOT / "build" / "dev" / "integrations" / "mpi"
    parser.add_argument("--lib-dir", type=Path, default=folder, help="where the libraries are")
    args = parser.parse_args()
    good = [measure(mpi, args) for mpi in args.mpi]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
