# SPDX-License-Identifier: Apache-2.0
"""Traces of real jobs: every call of tests/trace.c is there, as it was made."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wirepress.errors import CorruptError, TruncatedError
from wirepress.sim import trace_reader

TRUST = {"WIREPRESS_MPI_TRUST": "1", "WIREPRESS_MPI_SAME_HOST": "1"}
OFF = {"WIREPRESS_MPI_COMPRESS": "off"}
ON = {"WIREPRESS_MPI_CODEC": "lz4", "WIREPRESS_MPI_THRESHOLD": "1"}


def traced(mpi: Any, folder: Path, settings: dict[str, str], *words: str) -> trace_reader.Job:
    mine = TRUST | {"WIREPRESS_MPI_TRACE": str(folder)} | settings
    assert mpi.run(2, [mpi.build("trace.c"), *words], mine).count("ok trace") == 2
    return trace_reader.read(folder)


def rows(job: trace_reader.Job, rank: int, *calls: str) -> list[tuple[Any, ...]]:
    """(peer, tag, count, sent, received, type) of these calls."""
    found = job.ranks[rank]
    names = found.meta["dtypes"]
    return [
        (int(r["peer"]), int(r["tag"]), *(int(r[k]) for k in ("count", "sent", "received")),
         names[r["dtype"]])
        for r in found.records
        if found.calls[r["call"]] in calls
    ]  # fmt: skip


@pytest.mark.parametrize("settings", [OFF, ON], ids=["off", "on"])
def test_every_call_is_recorded(mpi, tmp_path, settings) -> None:
    report = tmp_path / "report.json"
    job = traced(mpi, tmp_path / "t", settings | {"WIREPRESS_MPI_REPORT": str(report)})
    f32, f64 = "float32", "float64"
    assert rows(job, 0, "MPI_Send", "MPI_Isend") == [
        (1, 7, 30000, 120000, 0, f32),
        (1, 8, 100, 400, 0, f32),
        (-1, 9, 5, 20, 0, "int32"),
        (1, 5, 4, 4, 0, "bytes"),
    ]
    # what came, not what could have come
    assert rows(job, 1, "MPI_Recv") == [(0, 7, 30000, 0, 120000, f32)]
    assert rows(job, 1, "MPI_Irecv") == [(-2, 8, 300, 0, 1200, f32), (0, 5, 4, 0, 4, "bytes")]
    half = [(0, 3, 10, 40, 0, "int32"), (0, 3, 20, 0, 40, "int32")]
    assert rows(job, 1, "MPI_Sendrecv") == half
    persistent = rows(job, 1, "MPI_Send_init", "MPI_Recv_init")
    assert len(persistent) == 6 and persistent[2:4] == persistent[:2]
    assert rows(job, 0, "MPI_Bcast") == [
        (1, 0, 4096, 0, 32768, f64),
        (0, 0, 16, 0, 128, f64),
        (0, 0, 17, 0, 136, f64),
    ]
    assert rows(job, 1, "MPI_Bcast")[0] == (1, 0, 4096, 32768, 0, f64)
    assert rows(job, 1, "MPI_Allreduce") == [(-1, 0, 1000, 8000, 8000, f64)] * 2
    assert rows(job, 0, "MPI_Reduce") == [(0, 0, 500, 4000, 4000, f64)]
    assert rows(job, 1, "MPI_Reduce") == [(0, 0, 500, 4000, 0, f64)]
    assert rows(job, 0, "MPI_Allgather") == [(-1, 0, 300, 2400, 4800, f64)]
    assert rows(job, 1, "MPI_Allgatherv") == [(-1, 0, 200, 1600, 2400, f64)]
    assert rows(job, 1, "MPI_Alltoall") == [(-1, 0, 80, 640, 640, f64)]
    assert rows(job, 1, "MPI_Gather") == [(1, 0, 30, 240, 480, f64)]
    assert rows(job, 1, "MPI_Scatter") == [(0, 0, 0, 0, 160, f64)]
    assert rows(job, 0, "MPI_Reduce_scatter_block") == [(-1, 0, 128, 1024, 512, f64)]
    assert rows(job, 0, "MPI_Iallreduce") == [(-1, 0, 10, 80, 80, f64)]
    assert len(rows(job, 0, "MPI_Barrier")) == 1
    assert (json.loads(report.read_text())["state"] == "on") == (settings is ON)
    sent = [rank["calls"].get("MPI_Send", {}) for rank in json.loads(report.read_text())["ranks"]]
    assert bool(sent[0].get("compressed_messages")) == (settings is ON)


def test_requests_waits_and_communicators(mpi, tmp_path) -> None:
    job = traced(mpi, tmp_path, OFF)
    records, names = job.ranks[1].records, job.ranks[1].calls
    calls = np.array([names[i] for i in records["call"]])
    irecv = records[calls == "MPI_Irecv"]
    done = records[calls == "completion"]
    # of three requests one was there; then two starts of a pair
    assert records[calls == "MPI_Waitall"]["count"].tolist() == [3, 2, 2]
    assert len(done) == 5 and done[0]["request"] == irecv[0]["request"]
    assert (done[0]["peer"], done[0]["tag"], done[0]["received"]) == (0, 8, 400)
    assert len(np.unique(done["request"])) == 5
    started = records[records["flags"] & trace_reader.STARTED > 0]
    assert set(started["request"]) == set(done["request"][1:])
    # it was tested again and again for 10 ms, and recorded once
    (test,) = records[calls == "MPI_Test"]
    assert test["request"] == irecv[1]["request"] and test["received"] == 4
    assert test["sent"] > 0  # ns in those that found nothing
    sums = records[calls == "MPI_Allreduce"]
    assert [trace_reader.OPS[op] for op in sums["op"]] == ["max", "sum"]
    assert [bool(f & trace_reader.IN_PLACE) for f in sums["flags"]] == [False, True]
    # The halves are one communicator on both, and so are the twins; ranks are turned round.
    comms = [list(rank.comms.values()) for rank in job.ranks]
    assert [c.key for c in comms[0]] == [c.key for c in comms[1]]
    assert [c.members for c in comms[0]] == [(0, 1), (1, 0), (1, 0)]
    assert comms[0][1].key != comms[0][2].key and comms[0][1].rank == 1
    # Rank 1 slept for 20 ms before it received.
    recv = int(np.flatnonzero(calls == "MPI_Recv")[0])
    assert job.begin[1][recv] - job.end[1][recv - 1 if recv else 0] > 0.015 or recv == 0
    assert (job.begin[0] <= job.end[0]).all() and job.clock_error < 0.1
    # The send ends when, or after, the message is there: one clock.
    assert len(job.ranks[1].clocks) == 2


@pytest.mark.parametrize("binding", ["mpif.h", pytest.param("mpi_f08", marks=pytest.mark.slow)])
def test_fortran(mpi, tmp_path, binding) -> None:
    program = mpi.build_fortran("fortran.F90", binding)
    mpi.run(2, [program], TRUST | OFF | {"WIREPRESS_MPI_TRACE": str(tmp_path)})
    job = trace_reader.read(tmp_path)
    calls = Counter(job.ranks[0].calls[i] for i in job.ranks[0].records["call"])
    assert {"MPI_Send", "MPI_Allreduce", "MPI_Bcast", "MPI_Wait"} <= set(calls), calls
    assert all(rank.records["sent"].max() > 1000 for rank in job.ranks)


@pytest.mark.parametrize("settings", [OFF, ON], ids=["off", "on"])
def test_threads(mpi, tmp_path, settings) -> None:
    job = traced(mpi, tmp_path, settings, "threads")
    for rank in job.ranks:
        calls = rank.records["call"] != rank.calls.index("tracer")
        assert sorted(Counter(rank.threads[calls].tolist()).values()) == [400, 400]
        for thread in (0, 1):
            mine = rank.records[calls & (rank.threads == thread)]
            assert len(np.unique(mine["tag"])) == 1
            assert (mine["begin"][1:] >= mine["end"][:-1]).all()


def test_persistent_sends_are_sampled_when_they_start(mpi, tmp_path) -> None:
    """When they are made the buffer holds nothing yet."""
    settings = TRUST | OFF | {"WIREPRESS_MPI_TRACE_SAMPLE": "256KiB"}
    settings["WIREPRESS_MPI_TRACE"] = str(tmp_path / "t")
    mpi.run(2, [mpi.build("small.c"), "persistent", "16384"], settings, 180)
    for rank in trace_reader.read(tmp_path / "t").ranks:
        sent = sum(int(r["sent"]) for r in rank.records if r["flags"] & trace_reader.STARTED)
        assert sum(s.stands_for for s in rank.samples) == pytest.approx(sent, rel=0.2)
        assert {rank.calls[s.call] for s in rank.samples} == {"MPI_Send_init"}
        assert all((np.frombuffer(s.data, "f8") > 290).all() for s in rank.samples)


def test_samples_keep_within_their_room(mpi, tmp_path) -> None:
    """Each rank sends 20 x 1 MiB of 0 to 511 over and over, and their first halves packed."""
    room = OFF | {"WIREPRESS_MPI_TRACE_SAMPLE": "8MiB"}
    job = traced(mpi, tmp_path, room, "large")
    for rank in job.ranks:
        pieces = [(s.stands_for, np.frombuffer(s.data, "f4")) for s in rank.samples]
        assert 3 << 19 < sum(piece.nbytes for _, piece in pieces) <= 4 << 20
        sent = int(rank.records["sent"].sum())
        assert sent == 20 * (1 << 20) + 20 * (1 << 19)
        assert 0.9 * sent < sum(stands_for for stands_for, _ in pieces) <= sent
        packed = 0
        for _, piece in pieces:
            step = np.diff(piece)
            halves = bool((piece < 256).all())
            packed += halves
            assert ((step == 1) | (step == (-255 if halves else -511))).all()
        assert 0 < packed < len(pieces)
    ((dtype, data),) = trace_reader.samples(job)
    assert dtype == "float32" and len(data) > 1 << 20


def test_messages_that_take_turns_are_both_sampled(mpi, tmp_path) -> None:
    """400 x 64 KiB, every second one of ones: samples at equal distances are all of one kind."""
    room = OFF | {"WIREPRESS_MPI_TRACE_SAMPLE": "2MiB"}
    for rank in traced(mpi, tmp_path, room, "turns").ranks:
        ones = [bool(np.frombuffer(s.data, "f4").all()) for s in rank.samples]
        assert len(ones) >= 16
        assert 0.25 < sum(ones) / len(ones) < 0.75


def test_a_killed_rank_leaves_what_it_wrote(mpi, tmp_path) -> None:
    mine = {"LD_PRELOAD": str(mpi.library), "WIREPRESS_MPI_TRACE": str(tmp_path)} | TRUST | OFF
    done = mpi.start([mine] * 2, [mpi.build("trace.c"), "kill"])
    assert done.returncode != 0
    with pytest.raises(TruncatedError, match="is the file cut"):
        trace_reader.read(tmp_path)
    job = trace_reader.read(tmp_path, partial=True)
    assert not job.ranks[1].whole
    lost = 3000 - len(job.ranks[1].records)
    assert lost <= 1024
    names = job.ranks[1].calls
    assert {names[i] for i in job.ranks[1].records["call"]} == {"MPI_Recv", "MPI_Send", "tracer"}


def test_a_trace_that_cannot_be_written_does_not_harm(mpi, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", Path("/dev/full/x")):
        mine = {"LD_PRELOAD": str(mpi.library), "WIREPRESS_MPI_TRACE": str(folder)} | TRUST | OFF
        done = mpi.start([mine] * 2, [mpi.build("trace.c")])
        assert done.returncode == 0 and done.stdout.count("ok trace") == 2
        assert "the trace ends here" in done.stderr


def test_nothing_is_written_unless_asked_for(mpi, tmp_path) -> None:
    mpi.run(2, [mpi.build("trace.c")], TRUST | OFF)
    assert not list(tmp_path.iterdir())


def test_the_command(mpi, tmp_path) -> None:
    """A script of two jobs: a folder for each, and their sums at the end."""
    job = f"mpirun.{mpi.name} -n 2 {mpi.build('trace.c')}"
    script = tmp_path / "jobs.sh"
    script.write_text(f"set -e\n{job}\n{job} large\n")
    command = [sys.executable, "-m", "wirepress", "trace", "-o", "t", "--sample", "1MiB", "--"]
    done = subprocess.run(
        [*command, "sh", str(script)],
        cwd=tmp_path,
        env=mpi.environment() | {"WIREPRESS_LIB_DIR": str(mpi.library.parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0 and done.stdout.count("ok trace") == 4, done.stderr
    assert done.stderr.count("2 ranks") == 2 and "MPI_Allreduce" in done.stderr
    first, second = trace_reader.read(tmp_path / "t"), trace_reader.read(tmp_path / "t" / "job-2")
    assert first.ranks[0].job != second.ranks[0].job
    assert trace_reader.samples(second) and first.ranks[0].meta["codec"] is None


def test_damage_is_found(mpi, tmp_path) -> None:
    """Every byte of a real trace is covered by some check."""
    job = traced(mpi, tmp_path, OFF)
    path = job.ranks[0].path
    good = path.read_bytes()
    bad = tmp_path / "bad.wpt"
    for at in range(0, len(good), 41):
        bad.write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1 :])
        with pytest.raises((CorruptError, TruncatedError), match=r"bad\.wpt: "):
            trace_reader.read_rank(bad)
    for size in range(0, len(good), 97):
        bad.write_bytes(good[:size])
        with pytest.raises(TruncatedError, match="bytes were expected"):
            trace_reader.read_rank(bad)
