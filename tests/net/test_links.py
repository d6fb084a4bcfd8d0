# SPDX-License-Identifier: Apache-2.0
"""What ranks take the rate of a link for, and that the same job decides the same again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hosts import Hosts, bits_per_second
from installed import libraries_of

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
WIREPRESS = [sys.executable, "-m", "wirepress", "run", "--quiet"]
PAYLOAD = 0.95  # of a link's bits
LEAST, MOST = 0.25, 1.3
LEAST_STARVED = 0.02  # where neither ranks nor links get the processor
# Other tests share the cores, and what ranks cannot send they cannot measure. Nothing makes a link
# faster than it is: of several runs the fastest counts against the lower bound.
TURNS = 3


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request: pytest.FixtureRequest) -> str:
    flavour: str = request.param
    libraries_of(flavour)
    return flavour


def job(
    hosts: Hosts, mpi: str, ranks: int, folder: Path, program: list[str], *options: str
) -> tuple[dict[str, Any], int]:
    """The report, and the bytes that the NICs sent."""
    report, before = folder / "report.json", sum(hosts.sent_bytes())
    words = [*WIREPRESS, *options, "--report", str(report), "--", *hosts.mpirun(mpi, ranks)]
    done = subprocess.run(
        hosts.on(0, [*words, *program]),
        env=os.environ | {"OMPI_MCA_mpi_yield_when_idle": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(report.read_text()), sum(hosts.sent_bytes()) - before


def build(mpi: str, folder: Path) -> str:
    program = folder / "waits"
    subprocess.run(
        [f"mpicc.{mpi}", "-std=gnu99", "-O1", HERE / "waits.c", "-o", program], check=True
    )
    return str(program)


@pytest.mark.parametrize(
    ("rate", "ranks"),
    [("200mbit", 1), pytest.param("1gbit", 2, marks=pytest.mark.slow)],
)
def test_a_receiver_that_computes_makes_no_link_slow(mpi, rate, ranks, tmp_path):
    """Nor do socket buffers, in which the sender's messages vanish at once, make it fast."""
    program = build(mpi, tmp_path)
    share = PAYLOAD * bits_per_second(rate) / 8 / ranks
    fastest = {"30": 0.0, "0": 0.0}  # rank that has least, by milliseconds that receivers compute
    with Hosts(2, rate) as hosts:
        for milliseconds in [*fastest] * TURNS:
            report, _ = job(hosts, mpi, ranks, tmp_path, [program, "131072", "20", milliseconds])
            rates = [rank["link_bytes_per_second"] for rank in report["ranks"]]
            assert len(rates) == 2 * ranks and max(rates) < MOST * share, rates
            fastest[milliseconds] = max(fastest[milliseconds], min(rates))
            if fastest["30"] > LEAST * share:
                return
    # Too busy a machine: it is held to what receivers give that do not compute.
    assert fastest["30"] > LEAST * fastest["0"], fastest
    assert fastest["0"] > LEAST_STARVED * share, fastest


def test_small_messages_need_no_large_ones(mpi, tmp_path):
    """A program that sends nothing above 64 KiB is compressed from its first message on."""
    with Hosts(2, "100mbit") as hosts:
        report, _ = job(hosts, mpi, 1, tmp_path, [build(mpi, tmp_path), "16384", "50", "0"])
    rank = report["ranks"][0]
    sent = rank["calls"]["MPI_Send"]
    assert sent["compressed_messages"] == 50 and sent["ratio"] > 3, (sent, rank["sites"])


def test_what_the_measurement_sends_is_counted(mpi, tmp_path):
    with Hosts(2, "200mbit") as hosts:
        report, sent = job(hosts, mpi, 1, tmp_path, [build(mpi, tmp_path), "8", "1", "0"])
    assert 100_000 < report["totals"]["wire_bytes"] < 5_000_000
    assert report["totals"]["wire_bytes"] == pytest.approx(sent, rel=0.1, abs=60_000)


@pytest.mark.slow
def test_the_same_job_sends_the_same_again(tmp_path):
    libraries_of("openmpi")
    model = [sys.executable, str(EXAMPLES / "lm_mpi" / "lm_mpi.py")]
    program = [*model, "--words", "4000", "--text", "400000", "--steps", "16"]
    with Hosts(2, "200mbit") as hosts:
        sent = [job(hosts, "openmpi", 1, tmp_path, program)[1] for _ in range(3)]
    assert max(sent) < 1.1 * min(sent), sent
