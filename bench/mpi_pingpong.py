#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs, or gains, to have wirepress loaded: a ping-pong without and with it.

Two ranks on one host (shared memory) or on two hosts joined at a rate (tests/net, needs root). Runs
come in pairs, in alternating order; each pair gives a ratio per size, with / without; the median
of these ratios counts, so what else the machine does hits both alike. `--null` runs plain
against plain: what it shows is the error of the measurement. A run's time for a size is the median
of its trips; "by p10" is the same from their fastest tenth, which a busy machine disturbs less.

The limit: with noise, or in shared memory, the median of all ratios may be 1.03 at most, and no
size may be beyond it with all of the 95 % interval of its median. Exit status 1 if it is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import results
from results import ROOT

BUILD = ROOT / "build" / "bench"
sys.path.insert(0, str(ROOT / "tests" / "net"))
from hosts import Hosts, bits_per_second, why_not  # noqa: E402

LIMIT = 1.03
RUN_SECONDS = 900  # a hang must not last
FLAVOURS = ("openmpi", "mpich")


@dataclass
class Place:
    """Where the two ranks are: a rate between two hosts, or shared memory."""

    name: str
    hosts: Hosts | None = None

    def mpirun(self, mpi: str) -> list[str]:
        return self.hosts.mpirun(mpi, 1) if self.hosts else [f"mpirun.{mpi}", "-n", "2"]

    def on(self, command: list[str]) -> list[str]:
        return self.hosts.on(0, command) if self.hosts else command


@contextlib.contextmanager
def place_of(name: str) -> Iterator[Place]:
    if name == "shm":
        yield Place(name)
        return
    with Hosts(2, name) as hosts:
        yield Place(name, hosts)


# ---- running ----


def build(mpi: str) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"mpi_pingpong.{mpi}"
    source = ROOT / "bench" / "mpi_pingpong.c"
    command = [f"mpicc.{mpi}", "-std=c11", "-O2", "-o", str(program), str(source), "-lm"]
    subprocess.run(command, check=True)
    return program


def environment(lib_dir: Path | None) -> dict[str, str]:
    values = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    return values | ({"WIREPRESS_LIB_DIR": str(lib_dir)} if lib_dir else {})


def wirepress_run(lib_dir: Path | None) -> list[str]:
    """The installed command; or, with libraries out of a build folder, the source tree's."""
    if lib_dir:
        return [sys.executable, str(ROOT / "python" / "wirepress" / "launch" / "run.py")]
    return [str(Path(sys.executable).parent / "wirepress"), "run"]


class Job:
    """One case: a program in a place, started without and with wirepress."""

    def __init__(self, place: Place, mpi: str, data: str, args: argparse.Namespace) -> None:
        self.place, self.args = place, args
        self.words = [str(BUILD / f"mpi_pingpong.{mpi}"), "--data", data,
                      "--min", str(args.min), "--max", str(args.max),
                      "--seconds", str(args.seconds)]  # fmt: skip
        self.mpirun = place.mpirun(mpi)

    def plain(self) -> list[str]:
        return [*self.mpirun, *self.words]

    def with_wirepress(self, report: Path) -> list[str]:
        options = ["--quiet", "--report", str(report)]
        if self.args.codec:
            options += ["--codec", self.args.codec]
        return [*wirepress_run(self.args.lib_dir), *options, "--", *self.plain()]

    def run(self, loaded: bool) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            command = self.place.on(self.with_wirepress(report) if loaded else self.plain())
            done = subprocess.run(
                command, env=environment(self.args.lib_dir), capture_output=True, text=True,
                timeout=RUN_SECONDS,
            )  # fmt: skip
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            if done.returncode or not lines:
                sys.exit(f"mpi_pingpong: {shlex.join(command)}\n{done.stdout}{done.stderr}")
            result: dict[str, Any] = {"sizes": [json.loads(line) for line in lines]}
            if loaded:
                result["wirepress"] = what_it_did(report)
            return result


def what_it_did(report: Path) -> dict[str, Any]:
    """From the job's report; a run in which wirepress was off would measure nothing."""
    said = json.loads(report.read_text())
    if said["state"] != "on":
        sys.exit(f"mpi_pingpong: wirepress was off: {said['reason']}")
    return said["totals"]


def paired(job: Job, args: argparse.Namespace) -> list[dict[str, Any]]:
    rounds = []
    for i in range(args.rounds):
        say(f"round {i + 1} of {args.rounds}")
        order = (False, True) if i % 2 == 0 else (True, False)
        runs = {second: job.run(second and not args.null) for second in order}
        rounds.append({"plain": runs[False], "with": runs[True]})
    return rounds


# ---- judging ----


def interval(values: list[float]) -> tuple[float, float]:
    """Covers the true median at least 95 times in 100 (order statistics; from 6 values on)."""
    ordered, n = sorted(values), len(values)
    k, tail = 0, 0.5**n
    while k + 1 < n / 2 and tail + math.comb(n, k + 1) * 0.5**n <= 0.025:
        k += 1
        tail += math.comb(n, k) * 0.5**n
    return ordered[k], ordered[n - 1 - k]


def times(rounds: list[dict[str, Any]], i: int, statistic: str) -> tuple[list[float], list[float]]:
    plain, loaded = ([r[kind]["sizes"][i][statistic] for r in rounds] for kind in ("plain", "with"))
    return plain, loaded


def table(rounds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for i, first in enumerate(rounds[0]["plain"]["sizes"]):
        plain, loaded = times(rounds, i, "median_us")
        ratios = [b / a for a, b in zip(plain, loaded, strict=True)]
        undisturbed = [b / a for a, b in zip(*times(rounds, i, "p10_us"), strict=True)]
        low, high = interval(ratios)
        rows.append({
            "size": first["size"],
            "plain_us": median(plain),
            "with_us": median(loaded),
            "ratio_of_medians": median(loaded) / median(plain),
            "median_of_ratios": median(ratios),
            "median_of_p10_ratios": median(undisturbed),
            "low": low,
            "high": high,
            "ratios": ratios,
        })  # fmt: skip
    return rows


def verdict(rows: list[dict[str, Any]], judged: bool) -> tuple[float, str]:
    overall = median(ratio for row in rows for ratio in row["ratios"])
    over = [str(row["size"]) for row in rows if row["low"] > LIMIT]
    if not judged:
        return overall, "no limit"
    if overall > LIMIT:
        return overall, "OVER THE LIMIT"
    return overall, f"OVER THE LIMIT at {', '.join(over)} bytes" if over else "within the limit"


def show(case: str, rows: list[dict[str, Any]], overall: float, said: str) -> None:
    print(f"\n{case}")
    print(f"{'bytes':>10} {'plain us':>11} {'with us':>11} {'of medians':>11} "
          f"{'median':>8} {'by p10':>8}  95 % interval")  # fmt: skip
    for row in rows:
        print(f"{row['size']:>10} {row['plain_us']:>11.1f} {row['with_us']:>11.1f} "
              f"{row['ratio_of_medians']:>11.3f} {row['median_of_ratios']:>8.3f} "
              f"{row['median_of_p10_ratios']:>8.3f}  "
              f"{row['low']:.3f} to {row['high']:.3f}")  # fmt: skip
    print(f"all sizes: median ratio {overall:.3f}, {said}", flush=True)


# ---- the record ----


def first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout.strip().splitlines() or [""])[0]


def mpi_version(mpi: str) -> str:
    said = subprocess.run([f"mpirun.{mpi}", "--version"], capture_output=True, text=True).stdout
    match = re.search(r"\d+\.\d+(\.\d+)?", said)
    return f"{mpi} {match[0] if match else 'unknown'}"


def record(case: str, mpi: str, content: dict[str, Any]) -> None:
    path = results.write(
        f"mpi_pingpong-{case}",
        content,
        commit=first_line("git", "-C", str(ROOT), "describe", "--always", "--dirty"),
        compiler=first_line(f"mpicc.{mpi}", "--version"),
        mpi=mpi_version(mpi),
        load=os.getloadavg()[0],
    )
    say(f"wrote {path.relative_to(ROOT)}")


# ---- the command ----


def say(text: str) -> None:
    print(f"mpi_pingpong: {text}", file=sys.stderr, flush=True)


def run_case(place: Place, mpi: str, data: str, args: argparse.Namespace) -> bool:
    case = f"{mpi}-{place.name}-{data}" + ("-null" if args.null else "")
    say(f"{case}: {args.rounds} rounds")
    rounds = paired(Job(place, mpi, data, args), args)
    rows = table(rounds)
    overall, said = verdict(rows, judged=data == "noise" or place.name == "shm")
    show(case, rows, overall, said)
    record(case, mpi, {
        "null": args.null, "limit": LIMIT, "overall": overall, "verdict": said,
        "table": rows, "rounds": rounds,
    })  # fmt: skip
    return "OVER" not in said


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    installed = [mpi for mpi in FLAVOURS if shutil.which(f"mpicc.{mpi}")]
    many = {"nargs": "+", "metavar": "X"}
    parser.add_argument("--mpi", choices=FLAVOURS, default=installed, **many)
    parser.add_argument("--places", default=["shm", "1gbit"], help="shm, 1gbit, none ...", **many)
    parser.add_argument(
        "--data", choices=("noise", "floats", "sparse", "zeros"), default=["noise"], **many
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2, help="per size and run")
    parser.add_argument("--min", type=int, default=64 << 10)
    parser.add_argument("--max", type=int, default=16 << 20)
    parser.add_argument("--codec", help="recipe for wirepress run (default: its own)")
    parser.add_argument("--null", action="store_true", help="plain against plain")
    parser.add_argument("--lib-dir", type=Path, help="libraries of a build folder, not .venv's")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    for place in args.places:
        try:
            bits_per_second(place if place not in ("shm", "none") else "1gbit")
        except ValueError as error:
            parser.error(f"--places: {error}, and not shm")
    if not args.mpi:
        parser.error("no MPI is installed: apt-get install libopenmpi-dev openmpi-bin")
    return args


def main() -> int:
    args = arguments()
    for mpi in args.mpi:
        build(mpi)
    good = []
    for name in args.places:
        if name != "shm" and (reason := why_not()):
            say(f"{name} skipped: {reason}")
            continue
        with place_of(name) as place:
            good += [run_case(place, mpi, data, args) for mpi in args.mpi for data in args.data]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
