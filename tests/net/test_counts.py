# SPDX-License-Identifier: Apache-2.0
"""What a job's report counts, beside what the NICs sent: every call, small and large, raw,
compressed, and by contests.

`traffic.c` reads its host's NIC before and after each call. Headers are taken off as the report
takes them off: 66 bytes a packet.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hosts import Hosts
from installed import libraries_of

from wirepress.launch.job_report import AGREEMENT, LEAST_DIFFERENCE, PACKET_HEADERS

HERE = Path(__file__).parent
WIREPRESS = [sys.executable, "-m", "wirepress", "run", "--quiet"]
HEADER = PACKET_HEADERS["ethernet"]
SLACK = 20_000  # bytes a case: barriers, and what MPI tells itself
LARGE, SMALL = ("65536", "2"), ("100", "40")  # doubles a message, times
MODES = {
    "raw": ({"threshold": "1GiB", "contest": "off"}, (*LARGE, "random")),
    "compressed": ({"codec": "zstd:1", "contest": "off"}, LARGE),
    "in_pieces": ({"codec": "zstd:1", "contest": "off", "pieces": "256KiB"}, LARGE),
    "contests": ({}, ("65536", "6")),
    "small": ({}, SMALL),
}


@pytest.fixture(params=["openmpi", "mpich"])
def mpi(request: pytest.FixtureRequest) -> str:
    flavour: str = request.param
    libraries_of(flavour)
    return flavour


def build(mpi: str, folder: Path) -> Path:
    program = folder / "traffic"
    # MPI's headers make gcc believe that MPI_STATUSES_IGNORE is an array.
    words = [f"mpicc.{mpi}", "-O1", "-Wall", "-Werror", "-Wno-stringop-overflow", "-o", program]
    subprocess.run([*words, HERE / "traffic.c"], check=True)
    return program


def count(
    hosts: Hosts, mpi: str, ranks: int, folder: Path, mode: str
) -> tuple[dict[str, int], dict[str, Any]]:
    """The NICs' bytes by call, without headers, and the report."""
    settings, words = MODES[mode]
    options = [word for key, value in settings.items() for word in (f"--{key}", value)]
    report = folder / "report.json"
    command = [*WIREPRESS, *options, "--report", str(report), "--"]
    command += [*hosts.mpirun(mpi, ranks), str(build(mpi, folder)), *words]
    environment = os.environ | {"OMPI_MCA_mpi_yield_when_idle": "1"}
    done = subprocess.run(
        hosts.on(0, command), env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    seen: dict[str, dict[str, int]] = {}
    for name, host, sent, packets in (line.split() for line in done.stdout.splitlines()):
        # Ranks of a host all say the same, give or take the last acknowledgement.
        seen.setdefault(name, {})[host] = int(sent) - HEADER * int(packets)
    assert len(seen) > 40
    nics = {name: sum(by_host.values()) for name, by_host in seen.items()}
    return nics, json.loads(report.read_text())


def check_whole_job(hosts: Hosts, sent_before: int, report: dict[str, Any]) -> None:
    """The totals are what the NICs sent, and so is what the report says that they sent."""
    totals, network = report["totals"], report["network"]
    payload = network["nic_payload_bytes"]
    assert network["hosts"] == hosts.n
    # The launcher passes on what the ranks print: of a small job that is more than 1 %.
    counted = pytest.approx(totals["wire_bytes"], rel=AGREEMENT, abs=LEAST_DIFFERENCE)
    assert payload == counted, totals
    assert network["difference"] == ""
    # Besides, there is what the launcher says before MPI_Init and after MPI_Finalize.
    assert 0 <= sum(hosts.sent_bytes()) - sent_before - network["nic_bytes"] < 1_000_000


@pytest.mark.parametrize(
    "mode",
    [
        "compressed",
        *(pytest.param(mode, marks=pytest.mark.slow) for mode in MODES if mode != "compressed"),
    ],
)
def test_one_rank_a_host(mpi: str, mode: str, tmp_path: Path) -> None:
    with Hosts(2) as hosts:
        before = sum(hosts.sent_bytes())
        nics, report = count(hosts, mpi, 1, tmp_path, mode)
        check_whole_job(hosts, before, report)
    counted: Counter[str] = Counter()
    modelled: Counter[str] = Counter()
    for rank in report["ranks"]:
        for name, call in rank["calls"].items():
            counted[name] += call["wire_bytes"]
            modelled[name] += call["modelled_bytes"]
    for name, nic in nics.items():
        # MPI's own algorithm may send more than any must.
        assert counted[name] <= (1 + AGREEMENT) * nic, name
        if modelled[name] == 0 and mode != "small" and name != "MPI_Put":
            assert nic <= (1 + AGREEMENT) * counted[name] + SLACK, name
    if mode == "contests":
        assert modelled["MPI_Allreduce"] > 0 and modelled["wirepress"] > 0
    if mode == "in_pieces":
        assert sum(rank["events"]["in_pieces"] for rank in report["ranks"]) > 0
    if mode in ("compressed", "in_pieces"):
        assert 1.3 < report["totals"]["ratio"] < 3
    if mode in ("raw", "small"):  # more was sent only to measure the link
        totals = report["totals"]
        assert totals["wire_bytes"] - totals["raw_bytes"] == counted["wirepress"]


@pytest.mark.slow
def test_several_ranks_on_three_hosts(mpi: str, tmp_path: Path) -> None:
    """MPI's algorithms differ most from the model here: connections say what ranks sent."""
    if mpi == "mpich":
        pytest.skip("six ranks of MPICH on two cores take minutes")
    with Hosts(3) as hosts:
        before = sum(hosts.sent_bytes())
        _, report = count(hosts, mpi, 2, tmp_path, "compressed")
        check_whole_job(hosts, before, report)


def test_hosts_of_one_name_are_two_nodes(mpi: str, tmp_path: Path) -> None:
    """Ranks on two hosts of one kernel, in containers that have the same name."""
    container = ["unshare", "--uts", "sh", "-c", 'hostname twin && exec "$0" "$@"']
    with Hosts(2) as hosts:
        report = tmp_path / "report.json"
        words = [*WIREPRESS, "--threshold", "1KiB", "--report", str(report), "--"]
        words += [*hosts.mpirun(mpi, 1), *container, str(build(mpi, tmp_path)), "1000", "1"]
        done = subprocess.run(hosts.on(0, words), capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
    job = json.loads(report.read_text())
    assert [rank["host"] for rank in job["ranks"]] == ["twin", "twin"]
    assert job["nodes"] == [0, 1]


@pytest.mark.slow
def test_the_nics_saw_what_the_ranks_did_not_send(mpi: str, tmp_path: Path) -> None:
    """Another program's traffic is said to be that, and not added to the job's."""
    report = tmp_path / "report.json"
    tcp = [sys.executable, str(HERE / "tcp.py")]
    with Hosts(2, "100mbit") as hosts:
        ends = [["recv", hosts.address(1), "5998"], ["send", hosts.address(1), "5998", "300"]]
        others = [
            subprocess.Popen(hosts.on(1 - i, [*tcp, *ends[i]]), stdout=subprocess.DEVNULL)
            for i in range(2)
        ]
        program = [str(build(mpi, tmp_path)), *SMALL]
        words = [*WIREPRESS[:-1], "--report", str(report), "--", *hosts.mpirun(mpi, 1), *program]
        done = subprocess.run(hosts.on(0, words), capture_output=True, text=True, timeout=280)
        for process in reversed(others):
            process.terminate()
            process.wait(60)
        assert done.returncode == 0, done.stdout + done.stderr
    job = json.loads(report.read_text())
    assert "the NICs carried" in job["network"]["difference"]
    assert "not of the ranks' connections" in job["network"]["difference"]
    assert job["network"]["difference"] in done.stderr
    assert job["totals"]["wire_bytes"] < 0.5 * job["network"]["nic_payload_bytes"]
