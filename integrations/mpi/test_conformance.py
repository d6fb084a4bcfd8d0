# SPDX-License-Identifier: Apache-2.0
"""The short form of `make conformance-mpi`, and random programs from a seed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent / "tests" / "conformance_mpi.py"
MODULES = """test_p2p_buf test_p2p_buf_matched test_p2p_obj test_p2p_obj_matched test_msgspec
    test_cco_buf test_request test_status""".split()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["openmpi", "mpich", "openmpi5", "mpich5"])
def test_mpi4py_suite(name, tmp_path):
    result = tmp_path / "result.json"
    parts = [word for module in MODULES for word in ("--part", module)]
    command = [sys.executable, SCRIPT, "--mpi", name, "--suite", "mpi4py", "--ranks", "2"]
    command.append("--brief")
    done = subprocess.run(
        [*command, *parts, "--json", result], capture_output=True, text=True, timeout=600
    )
    if done.returncode == 77:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = json.loads(result.read_text())["mpis"]
    assert len(job["results"]) == len(MODULES)
    assert sum(part["interposed"]["pass"] for part in job["results"]) > 300
    sent = sum(part["interposer"]["compressed_messages"] for part in job["results"])
    assert sent > 400


# ---- the soak ----------------------------------------------------------------------------------


def soak(mpi, ranks: int, settings: dict[str, str], seed: int, seconds: int, *words: str) -> None:
    """tests/soak.c for so long; what the interposer has in memory must not grow with the steps."""
    everything = {
        "LD_PRELOAD": f"{mpi.library}:{mpi.build('live.c')}",
        "WIREPRESS_MPI_TRUST": "1",
        "WIREPRESS_MPI_SAME_HOST": "1",
        "WIREPRESS_MPI_THRESHOLD": "1",
        "WIREPRESS_MPI_CHUNK": "32KiB",
        "WIREPRESS_MPI_LINK": "100Mbps",
    }
    program = [mpi.build("soak.c"), "--seed", str(seed), "--seconds", str(seconds), *words]
    limit = seconds * 2 + 1200  # only a hang takes that long
    out = mpi.run(ranks, program, everything | settings, seconds=limit)
    match = re.search(r"ok soak: .* steps (\d+) (\d+), blocks (\d+) (\d+),", out)
    assert match, out
    at_middle, steps, middle, end = map(int, match.groups())
    assert steps >= 8 and end > 0
    if "--steps" not in words:  # so few would still grow to what a step may need
        # how many communicators and threads there are just then differs; a leak is one a step
        assert end - middle < 100 + (steps - at_middle) // 8, out


@pytest.mark.parametrize("codec", ["lz4", "auto"])
def test_soak_is_quick(mpi, tmp_path, codec):
    report = tmp_path / "report.json"
    settings = {"WIREPRESS_MPI_CODEC": codec, "WIREPRESS_MPI_REPORT": str(report)}
    soak(mpi, 2, settings, 2, 60, "--steps", "64")
    rank = json.loads(report.read_text())["ranks"][0]
    sent = {call: made["compressed_messages"] for call, made in rank["calls"].items()}
    assert sum(sent.values()) > 20 and rank["events"]["corrupt"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--multiple"]])
def test_soak(mpi, words):
    ranks = 4 if mpi.name == "openmpi" else 2  # MPICH spins: more ranks than cores take minutes
    seconds = int(os.environ.get("WPR_SOAK_SECONDS", "20"))
    warm = "400"  # from these steps on the interposer has what it needs for any
    lz4 = {"WIREPRESS_MPI_CODEC": "lz4"}
    soak(mpi, ranks, lz4, 3 + len(words), seconds, "--warm", warm, *words)


@pytest.mark.slow
def test_soak_plain(mpi):
    done = mpi.start([{}] * 2, [mpi.build("soak.c"), "--seconds", "5"], seconds=120)
    assert done.returncode == 0, done.stdout + done.stderr
