#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two unmodified MPI programs over a slow link, without and with wirepress.

Two hosts (network namespaces) joined at 1 Gb/s, two ranks on each. Runs alternate, and the fastest
of each kind counts. Without root there are no hosts: everything runs on loopback, whose rate is not
limited, and only bytes are worth looking at.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "demo"
sys.path.insert(0, str(ROOT / "tests" / "net"))
from hosts import Hosts, why_not  # noqa: E402

RANKS_A_HOST = 2
LIMIT = 300  # seconds for one run: a hang must not last


@dataclass
class Program:
    name: str
    command: list[str]
    codecs: list[str]  # beside plain; "store" is the algorithm of wirepress without compression


@dataclass
class Run:
    seconds: float
    nic_bytes: int | None
    result: str  # hash of all that the program computed
    loss: float | None
    report: str = ""


@dataclass
class Row:
    program: str
    kind: str
    runs: list[Run] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return min(run.seconds for run in self.runs)

    @property
    def nic_bytes(self) -> float | None:
        known = [run.nic_bytes for run in self.runs if run.nic_bytes is not None]
        return sum(known) / len(known) if known else None


class Stage:
    """Where jobs run: two shaped hosts, or this machine."""

    def __init__(self, mpi: str, hosts: Hosts | None) -> None:
        self.mpi, self.hosts = mpi, hosts
        self.environment = {
            **os.environ,
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        if hosts is None:
            self.environment["WIREPRESS_MPI_SAME_HOST"] = "1"
            self.environment["OMPI_MCA_mpi_yield_when_idle"] = "1"

    def mpirun(self) -> list[str]:
        if self.hosts:
            return self.hosts.mpirun(self.mpi, RANKS_A_HOST)
        words = [f"mpirun.{self.mpi}", "-n", str(2 * RANKS_A_HOST)]
        return [*words, "--oversubscribe"] if self.mpi == "openmpi" else words

    def sent(self) -> int | None:
        return sum(self.hosts.sent_bytes()) if self.hosts else None

    def run(self, program: Program, kind: str, number: int) -> Run:
        command, report = [*self.mpirun(), *program.command], ""
        if kind != "plain":
            report = str(OUT / f"{program.name}-{kind}-{number}.json")
            wirepress = [str(Path(sys.executable).parent / "wirepress"), "run", "--quiet"]
            if kind == "store":  # the algorithm itself, not MPI's where that is faster
                wirepress += ["--contest", "off"]
            command = [*wirepress, "--codec", kind, "--report", report, "--", *command]
        if self.hosts:
            command = self.hosts.on(0, command)
        before, start = self.sent(), time.perf_counter()
        done = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=LIMIT
        )
        seconds, after = time.perf_counter() - start, self.sent()
        result = re.search(r"^result (\w+)", done.stdout, re.M)
        if done.returncode or not result:
            sys.exit(f"demo: {program.name} ({kind}) failed:\n{done.stdout}{done.stderr}")
        loss = re.search(r"^loss (\S+)", done.stdout, re.M)
        nic = None if before is None or after is None else after - before
        return Run(seconds, nic, result[1], float(loss[1]) if loss else None, report)


def build_wave(mpi: str) -> Path:
    program = OUT / f"wave_mpi.{mpi}"
    make = ["make", "-s", "-C", str(ROOT / "examples" / "wave_mpi")]
    subprocess.run([*make, f"MPICC=mpicc.{mpi}", f"OUT={program}"], check=True)
    return program


def programs(mpi: str) -> list[Program]:
    wave = build_wave(mpi)
    model = ROOT / "examples" / "lm_mpi" / "lm_mpi.py"
    return [
        Program("wave_mpi", [str(wave)], ["auto"]),
        Program("lm_mpi", [sys.executable, str(model), "--steps", "50"], ["auto", "store"]),
    ]


def measure(stage: Stage, program: Program, rounds: int) -> list[Row]:
    rows = [Row(program.name, kind) for kind in ["plain", *program.codecs]]
    for number in range(1, rounds + 1):
        for row in rows:
            say(f"{program.name}, {label(row)}, run {number} of {rounds}")
            row.runs.append(stage.run(program, row.kind, number))
    return rows


def say(text: str) -> None:
    print(f"demo: {text}", file=sys.stderr, flush=True)


def label(row: Row) -> str:
    return {"plain": "plain", "auto": "wirepress", "store": "wirepress, codec store"}[row.kind]


def identical(row: Row, plain: Row) -> str:
    """How the results of this row compare with each other and with plain ones."""
    results = {run.result for run in row.runs}
    if row is plain:
        return "NO: runs differ" if len(results) > 1 else ""
    if results == {run.result for run in plain.runs}:
        return "yes"
    # The order of float sums is the MPI library's own affair, and that of whose algorithm was
    # faster; a program without any agrees to the bit.
    losses = [run.loss for run in row.runs]
    other = plain.runs[0].loss
    if other is None or None in losses:
        return "NO"
    difference = max(abs(loss - other) / abs(other) for loss in losses if loss is not None)
    return f"loss to {difference:.0e}" if difference < 1e-3 else "NO"


def table(rows: list[Row]) -> list[str]:
    lines = [
        f"{'program':9} {'':23} {'seconds':>8} {'speed-up':>9} {'NIC MB':>8} {'ratio':>6}  results"
    ]
    for row in rows:
        plain = next(r for r in rows if r.program == row.program and r.kind == "plain")
        nic, plain_nic = row.nic_bytes, plain.nic_bytes
        ratio = f"{plain_nic / nic:.2f}" if nic and plain_nic else "-"
        lines.append(
            f"{row.program if row is plain else '':9} {label(row):23} {row.seconds:8.2f} "
            f"{plain.seconds / row.seconds:8.2f}x {f'{nic / 1e6:.1f}' if nic else '-':>8} "
            f"{ratio:>6}  {identical(row, plain)}".rstrip()
        )
    return lines


def claims(rows: list[Row]) -> list[str]:
    """What the reports say against what the NICs counted."""
    lines = []
    for row in rows:
        for run in row.runs[-1:]:
            if not run.report:
                continue
            totals = json.loads(Path(run.report).read_text())["totals"]
            between = f"{totals['wire_bytes'] / 1e6:.1f} MB between hosts"
            nic = f", the NICs {run.nic_bytes / 1e6:.1f} MB" if run.nic_bytes else ""
            lines.append(
                f"{run.report}: {totals['raw_bytes'] / 1e6:.1f} MB of messages, {between}{nic}"
            )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], default="openmpi")
    parser.add_argument("--rate", default="1gbit", help="of the link (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind (%(default)s)")
    parser.add_argument("--only", choices=["wave_mpi", "lm_mpi"], help="one of the programs")
    options = parser.parse_args()
    if not shutil.which(f"mpirun.{options.mpi}"):
        sys.exit(f"demo: mpirun.{options.mpi} is not installed; `make setup` as root installs it")
    OUT.mkdir(parents=True, exist_ok=True)
    reason = why_not()
    with contextlib.ExitStack() as stack:
        if reason:
            where = f"on loopback, whose rate is NOT limited ({reason})"
            stage = Stage(options.mpi, None)
        else:
            where = f"on two hosts joined at {options.rate}"
            stage = Stage(options.mpi, stack.enter_context(Hosts(2, options.rate)))
        say(f"{options.mpi}, {2 * RANKS_A_HOST} ranks {where}")
        rows: list[Row] = []
        for program in programs(options.mpi):
            if options.only in (None, program.name):
                rows += measure(stage, program, options.rounds)
    print(f"\n{options.mpi}, {2 * RANKS_A_HOST} ranks {where}; fastest of {options.rounds} runs\n")
    print("\n".join(table(rows)))
    if reason:
        print(
            "\nHere wirepress was told to compress between ranks of one host, which it never does"
            "\nby itself: look at the bytes below, not at the seconds."
        )
    print("\nreports:\n" + "\n".join(claims(rows)))
    saved = OUT / f"demo-{options.mpi}.json"
    saved.write_text(json.dumps({"where": where, "rows": [asdict(row) for row in rows]}, indent=1))
    return 1 if any("NO" in line.split("  ")[-1] for line in table(rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
