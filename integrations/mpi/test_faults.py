# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a job: with the library a program sees what it would see without."""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import pytest

TRUST = {
    "WIREPRESS_MPI_TRUST": "1",
    "WIREPRESS_MPI_SAME_HOST": "1",
    "WIREPRESS_MPI_THRESHOLD": "1",
    "WIREPRESS_MPI_CODEC": "lz4",
}


def both_ways(mpi, words: list[str], seconds: float) -> list[subprocess.CompletedProcess[str]]:
    """Plain, and with the library."""
    program = [mpi.build("faults.c"), *words]
    mine = TRUST | {"LD_PRELOAD": str(mpi.library)}
    return [mpi.start([way] * 2, program, seconds) for way in ({}, mine)]


@pytest.mark.slow
def test_killed_peer(mpi):
    """While it receives a message of many megabytes: the launcher ends the job, nobody waits."""
    for done in both_ways(mpi, ["killed"], 60):
        assert done.returncode != 0 and "ok faults" not in done.stdout, done.stdout


@pytest.mark.parametrize("size", [3000, 5_000_000])
def test_never_received(mpi, size):
    """A freed send that nobody receives: MPI_Finalize takes as long as without the library."""
    times = []
    for way in ({}, TRUST | {"LD_PRELOAD": str(mpi.library)}):
        begin = time.monotonic()
        program = [mpi.build("faults.c"), "unreceived", str(size)]
        done = mpi.start([way] * 2, program, 60)
        times.append(time.monotonic() - begin)
        assert done.returncode == 0 and done.stdout.count("ok faults") == 2, done.stderr
    assert times[1] < times[0] + 10, times


@pytest.mark.slow
def test_full_shared_memory(mpi):
    """/dev/shm holds nothing any more: as plain MPI takes it, so with the library."""
    mount = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=4k none /dev/shm && exec $0 $@"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*mount, "true"], capture_output=True).returncode
    ):
        pytest.skip("no right to mount a /dev/shm of one's own")
    codes = []
    for way in ({}, TRUST | {"LD_PRELOAD": str(mpi.library)}):
        words = [f"{key}={value}" for key, value in way.items()]
        environment = mpi.environment()
        environment.pop("OMPI_MCA_btl", None)  # shared memory is what it is about
        command = [*mount, f"mpirun.{mpi.name}", "-n", "2", "env", *words, mpi.build("p2p.c")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)
        codes.append(done.returncode)
    assert codes[0] == codes[1]


@pytest.mark.parametrize("collectives", ["on", "off"])
def test_no_memory(mpi, tmp_path, collectives):
    """A refused buffer is a message sent raw, or an error that says so; no damage, no waiting."""
    report = tmp_path / "report.json"
    settings = TRUST | {
        "LD_PRELOAD": f"{mpi.library}:{mpi.build('memory.c')}",
        "WIREPRESS_MPI_COLLECTIVES": collectives,
        "WIREPRESS_MPI_REPORT": str(report),
    }
    done = mpi.start([settings] * 2, [mpi.build("faults.c"), "memory"], 60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok faults") == 2
    ranks = json.loads(report.read_text())["ranks"]
    assert ranks[0]["events"]["no_memory"] == 0 < ranks[1]["events"]["no_memory"]
    if collectives == "on":
        sent = [rank["calls"]["MPI_Allreduce"] for rank in ranks]
        assert sent[0]["compressed_messages"] > 0 == sent[1]["compressed_messages"]
