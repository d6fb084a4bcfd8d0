# SPDX-License-Identifier: Apache-2.0
"""Jobs of mpi_calls.c for mpi_guard.py and mpi_speed.py: started under the interposer, on one host
or on several that are joined at a rate."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from results import ROOT

BUILD = ROOT / "build" / "bench"
sys.path.insert(0, str(ROOT / "tests" / "net"))
from hosts import Hosts, why_not  # noqa: E402

__all__ = ["Hosts", "build", "library", "ratio", "run", "why_not"]

OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


def build(mpi: str) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"mpi_calls.{mpi}"
    source = ROOT / "bench" / "mpi_calls.c"
    # Without tail calls: a call that ends a function has its caller's return address.
    command = [f"mpicc.{mpi}", "-std=gnu99", "-O2", "-fno-optimize-sibling-calls"]
    command.append("-Wno-stringop-overflow")  # of MPICH's MPI_STATUSES_IGNORE
    subprocess.run([*command, "-o", str(program), str(source), "-lm"], check=True)
    return program


def library(mpi: str, build_folder: Path) -> Path:
    path = build_folder / "integrations" / "mpi" / f"libwirepress_mpi_{mpi}.so"
    if not path.exists():
        raise SystemExit(f"{path} is not there: cmake --preset release, then build it")
    return path


def run(
    mpi: str,
    lib: Path,
    hosts: Hosts | None,
    ranks: int,
    arguments: dict[str, Any],
    settings: dict[str, str],
    seconds: float,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The program's rows, and the report of the job. `ranks`: on each host, or all on one."""
    program = [str(build(mpi)), *(f"{key}={value}" for key, value in arguments.items())]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        mine = {
            "LD_PRELOAD": str(lib),
            "WIREPRESS_MPI_TRUST": "1",
            "WIREPRESS_MPI_REPORT": str(report),
        } | settings
        words = ["env", *(f"{key}={value}" for key, value in mine.items()), *program]
        start = hosts.mpirun(mpi, ranks) if hosts else [f"mpirun.{mpi}", "-n", str(ranks)]
        command = [*start, *words]
        done = subprocess.run(
            hosts.on(0, command) if hosts else command,
            env={**os.environ, **OPEN_MPI},
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr[-2000:]}")
        return [json.loads(line) for line in done.stdout.splitlines()], json.loads(
            report.read_text()
        )


def ratio(row: dict[str, Any], of: str = "ours", to: str = "plain") -> float:
    """Median of the ratios of blocks that followed each other."""
    return median(b / a for a, b in zip(row[to], row[of], strict=True))
