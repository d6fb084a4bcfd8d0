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


def exit_status_is_lost(mpi) -> bool:
    """The launcher of MPICH 4.2 ends by 0 now and then where a rank failed."""
    return mpi.name == "mpich" and mpi.release().startswith("4.2")


@pytest.mark.slow
def test_killed_peer(mpi):
    """While it receives a message of many megabytes: the launcher ends the job, nobody waits."""
    for done in both_ways(mpi, ["killed"], 60):
        assert "ok faults" not in done.stdout, done.stdout
        assert done.returncode != 0 or exit_status_is_lost(mpi)


@pytest.mark.parametrize("size", [3000, 5_000_000])
def test_never_received(mpi, size):
    """A freed send that nobody receives: MPI_Finalize takes as long as without the library."""
    times = []
    for way in ({}, TRUST | {"LD_PRELOAD": str(mpi.library)}):
        begin = time.monotonic()
        program = [mpi.build("faults.c"), "unreceived", str(size)]
        done = mpi.start([way] * 2, program, 60)
        times.append(time.monotonic() - begin)
        if not way and "unmatched message" in done.stderr:
            pytest.skip("this MPI ends such programs itself")
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
    ends = []
    for way in ({}, TRUST | {"LD_PRELOAD": str(mpi.library)}):
        words = [f"{key}={value}" for key, value in way.items()]
        environment = mpi.environment()
        environment.pop("OMPI_MCA_btl", None)  # shared memory is what it is about
        command = [*mount, f"mpirun.{mpi.name}", "-n", "2", "env", *words, mpi.build("p2p.c")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)
        ends.append(("ok p2p" in done.stdout, exit_status_is_lost(mpi) or done.returncode))
    assert ends[0] == ends[1]


# When memory runs out, what is refused (bytes), and how large messages are (ints).
NO_MEMORY = [
    ("start", 4096, 300_000),  # no collective is ours
    ("later", 4096, 300_000),  # what was set aside at the start is there
    ("later", 2 << 20, 2_250_000),  # large messages only
]


@pytest.mark.parametrize(
    "words", [NO_MEMORY[1], pytest.param(NO_MEMORY[2], marks=pytest.mark.slow)]
)
def test_no_memory(mpi, rendezvous_class, words):
    """On one rank. A refused buffer is a message sent raw, a call left to MPI, or an error that
    says so; no damage, no waiting."""
    with rendezvous_class(2, [0, 1]) as server:
        ranks = no_memory(mpi, server, 2, words)
    assert ranks[0]["events"]["no_memory"] == 0 < ranks[1]["events"]["no_memory"]
    assert ranks[0]["calls"]["MPI_Allreduce"]["compressed_messages"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("nodes", [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1], [0, 1, 2, 2]])
@pytest.mark.parametrize("words", NO_MEMORY[:2])
def test_no_memory_anywhere(mpi, rendezvous_class, nodes, victim, words):
    with rendezvous_class(4, nodes) as server:
        ranks = no_memory(mpi, server, 4, words, victim)
    compressed = [rank["calls"]["MPI_Allreduce"]["compressed_messages"] for rank in ranks]
    assert any(compressed) == (words[0] == "later")


def no_memory(mpi, server, ranks: int, words: tuple, victim: int = 1) -> list[dict]:
    settings = server.settings | {
        "LD_PRELOAD": f"{mpi.library}:{mpi.build('memory.c')}",
        "WIREPRESS_MPI_CODEC": "lz4",
        "WIREPRESS_MPI_CHUNK": "64KiB",
        "MEMORY_VICTIM": str(victim),
    }
    done = mpi.start([settings] * ranks, [mpi.build("faults.c"), "memory", *map(str, words)], 120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok faults") == ranks
    return [json.loads(server.reports[rank]) for rank in range(ranks)]


@pytest.mark.parametrize("threads", [0, 4])
def test_no_threads(mpi, tmp_path, threads):
    """For non-blocking collectives, on one rank: nobody has them, or what has one waits for it."""
    report = tmp_path / "report.json"
    settings = TRUST | {
        "LD_PRELOAD": f"{mpi.library}:{mpi.build('memory.c')}",
        "WIREPRESS_MPI_NONBLOCKING": "on",
        "WIREPRESS_MPI_REPORT": str(report),
        "MEMORY_THREADS": str(threads),
    }
    done = mpi.start([settings] * 2, [mpi.build("nonblocking.c")], 60)
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in json.loads(report.read_text())["ranks"]:
        sent = rank["calls"]["MPI_Iallreduce"]
        assert (sent["bypasses"]["nonblocking"] == sent["messages"]) == (threads == 0)
