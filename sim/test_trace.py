# SPDX-License-Identifier: Apache-2.0
"""Traces made here, byte for byte as spec/trace.md says: what the reader refuses, and what becomes
of them. integrations/mpi/test_trace.py has real ones."""

from __future__ import annotations

import csv
import io
import itertools
import json
import random
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wirepress
from wirepress.errors import CorruptError, FrameError, ParameterError, TruncatedError
from wirepress.sim import calls, plan, simulate, trace_calls, trace_export, trace_reader
from wirepress.sim.trace_reader import RECEIVE_HALF

CALLS = [
    "tracer", "completion", "MPI_Send", "MPI_Isend", "MPI_Ssend", "MPI_Recv", "MPI_Irecv",
    "MPI_Sendrecv", "MPI_Wait", "MPI_Waitall", "MPI_Bcast", "MPI_Allreduce", "MPI_Iallreduce",
    "MPI_Barrier", "MPI_Test", "MPI_Send_init", "MPI_Start", "MPI_Neighbor_alltoall", "MPI_Gather",
    "MPI_Scatterv", "MPI_Alltoallv", "MPI_Alltoall",
]  # fmt: skip
JOB = bytes(range(16))
DTYPES = ["bytes", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
          "float16", "bfloat16", "float32", "float64"]  # fmt: skip
needs_simgrid = pytest.mark.skipif(
    not [*Path("/usr/lib/python3/dist-packages").glob("simgrid.cpython-*.so")],
    reason="no simgrid",
)


def fnv(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def call(name: str, begin: float, end: float, **more: int) -> tuple[int, ...]:
    """A record; times in milliseconds."""
    field = {"count": 0, "sent": 0, "received": 0, "request": 0, "peer": -1, "tag": 0, "comm": 1,
             "flags": 0, "dtype": 11, "op": 0} | more  # fmt: skip
    if name in ("tracer", "completion", "MPI_Wait", "MPI_Waitall", "MPI_Test"):
        field["comm"] = more.get("comm", 0)
    return (round(begin * 1e6), round(end * 1e6), field["count"], field["sent"], field["received"],
            field["request"], field["peer"], field["tag"], field["comm"], CALLS.index(name),
            field["flags"], field["dtype"], field["op"])  # fmt: skip


Block = tuple[int, int, int, int, int, bytes]  # kind, thread, entries, first, last, payload


class File:
    """One rank's file: blocks that a test may spoil before it is written."""

    def __init__(self, rank: int = 0, size: int = 1, monotonic: int = 10**12, **meta: Any) -> None:
        self.rank, self.size, self.monotonic = rank, size, monotonic
        description = {"host": "a", "pid": 1, "command": "job", "mpi": "an MPI", "codec": None,
                       "multiple": False, "nodes": list(range(size)), "calls": CALLS,
                       "wirepress": "0", "sample_bytes": 0, "dtypes": DTYPES} | meta  # fmt: skip
        self.blocks: list[Block] = [(1, 0, 1, 0, 0, json.dumps(description).encode())]
        self.job, self.version, self.end = JOB, 1, True

    def comm(self, *members: int, number: int = 1, rank: int | None = None) -> File:
        me = members.index(self.rank) if rank is None else rank
        words = [number, me, len(members), 0, *members]
        self.blocks.append((3, 0, 1, 0, 0, struct.pack(f"<{len(words)}i", *words)))
        return self

    def calls(self, *records: tuple[int, ...], thread: int = 0) -> File:
        array = np.array(list(records), trace_reader.RECORD)
        first, last = int(array["begin"].min()), int(array["end"].max())
        self.blocks.append((2, thread, len(records), first, last, array.tobytes()))
        return self

    def sample(self, data: bytes, stands_for: int, dtype: int = 11) -> File:
        head = struct.pack("<QQQIBB2x", 5, stands_for, len(data), 0, 2, dtype)
        self.blocks.append((4, 0, 1, 5, 5, head + data))
        return self

    def clock(self, at: int, difference: int, error: int) -> File:
        self.blocks.append((5, 0, 1, 0, 0, struct.pack("<QqQII", at, difference, error, 9, 0)))
        return self

    def seal(self, data: bytes) -> bytes:
        return struct.pack("<Q", fnv(self.job + struct.pack("<I", self.rank) + data))

    def block(self, number: int, offset: int, block: Block) -> bytes:
        kind, thread, n, first, last, payload = block
        frame = wirepress.compress(payload, "shuffle:64+lz4")
        head = struct.pack("<4sHHIIIIQQQQ", b"WPTb", kind, thread, number, len(frame), n, 0, first,
                           last, len(payload), offset)  # fmt: skip
        return head + self.seal(head) + frame

    def bytes(self) -> bytes:
        head = struct.pack("<8sII16sIIQQ", b"WPRTRACE", self.version, 64, self.job, self.rank,
                           self.size, 0, self.monotonic)  # fmt: skip
        data, index = head + struct.pack("<Q", fnv(head)), b""
        for i, block in enumerate(self.blocks):
            index += struct.pack("<QHHIQQ", len(data), *block[:5])
            data += self.block(i, len(data), block)
        if not self.end:
            return data
        trailer = struct.pack("<8sQ", b"WPTINDEX", len(data))
        data += self.block(len(self.blocks), len(data), (6, 0, len(index) // 32, 0, 0, index))
        return data + trailer + self.seal(trailer)

    def write(self, folder: Path, name: str = "") -> Path:
        path = folder / (name or f"job-{self.rank}.wpt")
        path.write_bytes(self.bytes())
        return path


def small() -> File:
    file = File().comm(0).calls(
        call("MPI_Isend", 1, 2, peer=0, sent=8, request=1),
        call("MPI_Irecv", 2, 3, peer=0, received=8, request=2),
        call("MPI_Waitall", 3, 4, count=2),
        call("completion", 4, 4, request=2, peer=0, received=8),
        call("completion", 4, 4, request=1),
    )  # fmt: skip
    return file.sample(b"1234" * 9, 100).clock(5, -3, 7)


# ---- the reader -------------------------------------------------------------------------------


def test_a_file_is_read(tmp_path: Path) -> None:
    rank = trace_reader.read_rank(small().write(tmp_path))
    assert (rank.rank, rank.size, rank.job, rank.whole) == (0, 1, JOB, True)
    assert [rank.calls[i] for i in rank.records["call"]][:2] == ["MPI_Isend", "MPI_Irecv"]
    assert rank.records["sent"].tolist() == [8, 0, 0, 0, 0]
    assert rank.comms[1].members == (0,) and rank.clocks == [(5, -3, 7)]
    assert rank.samples[0].data == b"1234" * 9


def damaged(what: str) -> File:
    file = small()
    if what == "call":
        file.calls((5, 6, 0, 0, 0, 0, 0, 0, 1, len(CALLS), 0, 0, 0))
    elif what == "time":
        file.calls((6, 5, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0))
    elif what == "communicator":
        file.calls(call("MPI_Send", 5, 6, peer=0, comm=9))
    elif what == "peer":
        file.calls(call("MPI_Send", 5, 6, peer=1))
    elif what == "type":
        file.calls(call("MPI_Send", 5, 6, peer=0, dtype=99))
    elif what == "request":
        file.calls(call("MPI_Wait", 5, 6, request=77))
    elif what == "span":
        kind, thread, n, first, last, payload = file.blocks[2]
        file.blocks[2] = (kind, thread, n, first + 1, last, payload)
    elif what == "entries":
        file.blocks[2] = (*file.blocks[2][:2], 4, *file.blocks[2][3:])
    elif what == "member":
        file.comm(0, 4, number=2)
    elif what == "numbering":
        file.comm(0, number=5)
    elif what == "rank":
        file.rank = 3
    elif what == "version":
        file.version = 2
    elif what == "json":
        file.blocks[0] = (1, 0, 1, 0, 0, b"{")
    elif what == "nodes":
        file.blocks[0] = File(nodes=[7]).blocks[0]
    elif what == "kind":
        file.blocks.append((9, 0, 1, 0, 0, b"x"))
    elif what == "second description":
        file.blocks.append(file.blocks[0])
    elif what == "sample":
        file.sample(b"", 5)
    elif what == "weight":
        file.sample(b"1234", 0)
    return file


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("call", r"block 5 at byte \d+: record 0: 22 calls have names"),
        ("time", r"record 0: it ends before it begins"),
        ("communicator", r"communicators are known up to 1"),
        ("peer", r"its peer is no member"),
        ("type", r"13 types have names"),
        ("request", r"record 5 completes request 77, which nothing started"),
        ("span", r"its records are not from 1000001 to 4000000 ns"),
        ("entries", r"320 bytes are not 4 records"),
        ("member", r"with ranks below 1"),
        ("numbering", r"communicator 5; 2 was expected"),
        ("rank", r"rank 3 of 1"),
        ("version", r"version 2, this reader knows 1"),
        ("json", r"no JSON"),
        ("nodes", r'"nodes" must be 1 numbers of nodes'),
        ("kind", r"kind 9: expected number 5"),
        ("second description", r"must be the description"),
        ("sample", r"a sample of 32 bytes"),
        ("weight", r"a sample that stands for nothing"),
    ],
)
def test_nonsense_is_refused(tmp_path: Path, what: str, said: str) -> None:
    with pytest.raises(CorruptError, match=said) as error:
        trace_reader.read_rank(damaged(what).write(tmp_path, "bad.wpt"))
    assert str(tmp_path / "bad.wpt") in str(error.value)


def test_cut_files(tmp_path: Path) -> None:
    whole = small().bytes()
    path = tmp_path / "cut.wpt"
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(TruncatedError, match=r"bytes were expected, \d+ are there"):
            trace_reader.read_rank(path)
    path.write_bytes(whole[:-1])
    assert len(trace_reader.read_rank(path, partial=True).records) == 5
    file = small()
    file.end = False
    rank = trace_reader.read_rank(file.write(tmp_path), partial=True)
    assert len(rank.records) == 5 and not rank.whole
    path.write_bytes(whole + b"more")
    with pytest.raises(CorruptError, match="4 bytes follow the trailer"):
        trace_reader.read_rank(path)


@pytest.mark.parametrize("n", [300, pytest.param(6000, marks=pytest.mark.slow)])
def test_anything_may_stand_in_a_file(tmp_path: Path, n: int) -> None:
    """Damage of every kind, with checksums that fit: it is read, or refused by name."""
    rng = random.Random(n)
    path = tmp_path / "fuzzed.wpt"
    outcomes: Counter[str] = Counter()
    for _ in range(n):
        file = small()
        i = rng.randrange(len(file.blocks))
        block = list(file.blocks[i])
        what = rng.randrange(6)
        if what == 0:  # a field of the head
            field = rng.randrange(5)
            block[field] = rng.choice([0, 1, 2, 7, 255, 65535])
        elif what == 1:
            file.blocks.insert(rng.randrange(len(file.blocks)), file.blocks[i])
        elif what == 2:
            del file.blocks[i]
        else:
            payload = bytearray(block[5])
            for _ in range(rng.randrange(1, 4)):
                payload[rng.randrange(len(payload))] = rng.choice([0, 1, 127, 128, 255])
            block[5] = bytes(payload[: rng.randrange(len(payload))] if what == 3 else payload)
        if what not in (1, 2):
            file.blocks[i] = tuple(block)  # type: ignore[call-overload]
        data = bytearray(file.bytes())
        if rng.random() < 0.2:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        try:
            job = trace_reader.read(path, partial=rng.random() < 0.5)
            trace_export.by_call(job)
            trace_reader.samples(job)
            list(trace_export.chrome_events(job))
            trace_export.write_csv(job, io.StringIO())
            trace_calls.workload(job)
            outcomes["read"] += 1
        except (FrameError, ParameterError) as error:
            outcomes["refused" if str(tmp_path) in str(error) else f"says: {error}"] += 1
    assert set(outcomes) == {"refused", "read"}, outcomes
    assert outcomes["refused"] > n / 4 and outcomes["read"] > n / 50, outcomes


def pair(tmp_path: Path, first: list[Any], second: list[Any], **meta: Any) -> trace_reader.Job:
    """Two ranks that have done these."""
    for rank, records in enumerate((first, second)):
        file = File(rank, 2, **meta).comm(0, 1)
        if records:
            file.calls(*records)
        file.write(tmp_path)
    return trace_reader.read(tmp_path)


def test_traces_of_several_jobs(tmp_path: Path) -> None:
    barrier = [call("MPI_Barrier", 1, 2)]
    pair(tmp_path, barrier, barrier)
    other = File(1, 2).comm(0, 1)
    other.job = b"another job 1234"
    other.write(tmp_path)
    with pytest.raises(ParameterError, match=r"job-1.wpt is of job 616e6f74 .*different jobs"):
        trace_reader.read(tmp_path)
    (tmp_path / "job-1.wpt").unlink()
    with pytest.raises(ParameterError, match=r"no trace of rank 1; the job had 2"):
        trace_reader.read(tmp_path)
    File(0, 2).comm(0, 1).write(tmp_path, "again.wpt")
    with pytest.raises(ParameterError, match="are both of rank 0"):
        trace_reader.read(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ParameterError, match=r"no \*\.wpt in this folder"):
        trace_reader.read(tmp_path / "empty")


def test_clocks_are_made_one(tmp_path: Path) -> None:
    """Rank 1's clock is 5 s behind, and 1 ms a second slow; its node-mate has no measurements."""
    second = 10**9
    for rank in range(3):
        file = File(rank, 3, monotonic=100 * second - 5 * second * (rank > 0), nodes=[0, 1, 1])
        file.comm(0, 1, 2).calls(call("MPI_Barrier", 1000, 1001), call("MPI_Barrier", 9000, 9001))
        if rank == 1:
            file.clock(0, 5 * second, 40).clock(10 * second, 5 * second + second // 100, 60)
        file.write(tmp_path)
    job = trace_reader.read(tmp_path)
    assert job.begin[0].tolist() == [0, 8]
    for begin in job.begin[1:]:
        assert begin.tolist() == pytest.approx([0.001, 8.009])
    assert job.clock_error == pytest.approx(60e-9)


# ---- what becomes of it -----------------------------------------------------------------------


def ops(program: list[calls.Call]) -> list[tuple[Any, ...]]:
    return [(c.op, round(c.seconds, 6)) if c.op == "compute" else (c.op, c.size) for c in program]


def test_messages_of_a_workload(tmp_path: Path) -> None:
    mib = 1 << 20
    job = pair(
        tmp_path,
        [
            call("MPI_Send", 10, 11, peer=1, tag=4, sent=100),  # eager
            call("MPI_Ssend", 12, 15, peer=1, tag=4, sent=200),
            call("MPI_Isend", 15, 16, peer=1, tag=5, sent=mib, request=1),
            call("MPI_Wait", 20, 30, request=1),
            call("MPI_Send", 30, 31, peer=1, tag=9, sent=50),  # nobody receives it
            call("MPI_Send", 31, 31, peer=-1, sent=50),
            call("MPI_Sendrecv", 40, 41, peer=1, tag=1, sent=mib),
            call("MPI_Sendrecv", 40, 41, peer=1, tag=1, received=8, flags=RECEIVE_HALF),
            call("tracer", 41, 50, comm=0, peer=-1),
        ],
        [
            call("MPI_Irecv", 0, 1, peer=-2, tag=-1, received=999, request=1),
            call("MPI_Recv", 1, 14, peer=0, tag=4, received=200),
            call("MPI_Test", 20, 21, request=1, peer=0, tag=4, received=100, sent=4000000),
            call("MPI_Irecv", 22, 23, peer=0, tag=5, received=mib, request=2),
            call("MPI_Waitall", 24, 31, count=1),
            call("completion", 31, 31, request=2, peer=0, tag=5, received=mib),
            call("MPI_Irecv", 31, 32, peer=0, tag=-1, received=1, request=3),  # freed
            call("MPI_Sendrecv", 40, 41, peer=0, tag=1, sent=8),
            call("MPI_Sendrecv", 40, 41, peer=0, tag=1, received=mib, flags=RECEIVE_HALF),
        ],
    )
    made, left = trace_calls.workload(job)
    # the clock begins with rank 1's first call
    assert ops(made.programs[0]) == [
        ("compute", 0.01), ("isend", 100), ("compute", 0.001), ("send", 200), ("isend", mib),
        ("compute", 0.004), ("complete", 0), ("compute", 0.009), ("isend", mib), ("irecv", 8),
        ("complete", 0), ("complete", 0),
    ]  # fmt: skip
    # 6 ms until the test, of which 4 ms in tests
    assert ops(made.programs[1]) == [
        ("irecv", 100), ("recv", 200), ("compute", 0.002), ("complete", 0), ("compute", 0.001),
        ("irecv", mib), ("compute", 0.001), ("complete", 0), ("compute", 0.008), ("isend", 8),
        ("irecv", mib), ("complete", 0),
    ]  # fmt: skip
    assert left.counts == {
        "sends that nobody received": 1, "receives that nothing completes": 1
    }  # fmt: skip


def test_collectives_of_a_workload(tmp_path: Path) -> None:
    def both(me: int) -> list[Any]:
        return [
            call("MPI_Allreduce", 1, 2, sent=800, received=800),
            call("MPI_Iallreduce", 2, 3, sent=400, received=400, request=1),
            call("MPI_Bcast", 3, 4, peer=1, sent=64 * (me == 1), received=64 * (me == 0)),
            call("MPI_Wait", 5, 6, request=1),
            call("MPI_Gather", 6, 7, peer=0, sent=16, received=32 * (me == 0)),
            call("MPI_Neighbor_alltoall", 7, 8, sent=16, flags=trace_reader.PER_NEIGHBOR),
            call("MPI_Barrier", 8, 9),
        ]

    made, left = trace_calls.workload(pair(tmp_path, both(0), both(1)))
    names = [c for c in made.programs[0] if c.op != "compute"]
    assert [(c.op, c.size, c.peer) for c in names] == [
        ("allreduce", 800, 0), ("iallreduce", 400, 0), ("bcast", 64, 1), ("complete", 0, 0),
        ("gather", 16, 0), ("barrier", 0, 0),
    ]  # fmt: skip
    assert left.counts == {"Neighbor_alltoall": 2}
    assert made.overlaps


def test_parts_of_a_collective_that_differ(tmp_path: Path) -> None:
    """The root keeps little of what it scatters; one rank sends, the other only receives."""

    def both(me: int) -> list[Any]:
        return [
            call(
                "MPI_Scatterv", 1, 2, peer=0, sent=1008 * (me == 0), received=8 if me == 0 else 1000
            ),
            call("MPI_Alltoallv", 2, 3, sent=600 * (me == 0), received=300),
        ]

    made, left = trace_calls.workload(pair(tmp_path, both(0), both(1)))
    sizes = [[(c.op, c.size) for c in p if c.op != "compute"] for p in made.programs]
    assert sizes[0] == [("scatter", 504), ("alltoall", 300)] and sizes[1][1] == ("alltoall", 0)
    assert not left.counts


def test_collectives_of_some_ranks_are_messages(tmp_path: Path) -> None:
    """Ranks 2 and 0, in this order; the closed form of a ring."""
    for rank in range(3):
        file = File(rank, 3).comm(0, 1, 2).comm(2, 0, number=2, rank=0 if rank else 1)
        inside = [call("MPI_Allreduce", 1, 2, sent=2000000, received=2000000, comm=2),
                  call("MPI_Bcast", 2, 3, peer=0, sent=7, comm=2)]  # fmt: skip
        file.calls(*(inside if rank != 1 else []), call("MPI_Barrier", 5, 6)).write(tmp_path)
    made, left = trace_calls.workload(trace_reader.read(tmp_path), eager=0)
    kinds = [Counter(c.op for c in p if c.op != "compute") for p in made.programs]
    assert kinds[0] == {"isend": 2, "irecv": 2, "complete": 4, "recv": 1, "barrier": 1}
    assert kinds[1] == {"barrier": 1} and kinds[2]["send"] == 1
    assert not left.counts
    made.programs = [[c for c in p if c.op != "compute"] for p in made.programs]
    if shutil.which("smpirun") is None:
        return
    (out,) = simulate.run([simulate.Job(made, simulate.Network(1e9, 0.0))])
    assert out.seconds == pytest.approx(2 * 1e6 / 1e9, rel=1e-4)


def test_a_killed_job_ends_where_all_of_it_was_written(wirepress_in, tmp_path: Path) -> None:
    """Rank 1 was killed in its third step, rank 0 wrote more: both end after the second."""
    for rank, steps in ((0, 4), (1, 3)):
        file = File(rank, 2).comm(0, 1)
        for i in range(steps):
            at = 10.0 * i
            file.calls(
                call(
                    "MPI_Isend", at, at + 1, peer=1 - rank, tag=1, sent=1 << 20, request=2 * i + 1
                ),
                call("MPI_Recv", at + 1, at + 2, peer=1 - rank, tag=1, received=1 << 20),
                *[call("MPI_Wait", at + 3, at + 4, request=2 * i + 1)] * (rank == 0 or i < 2),
                *[call("MPI_Allreduce", at + 5, at + 6, sent=800)] * (rank == 0 or i < 2),
            )
        file.end = False
        file.write(tmp_path)
    done = wirepress_in("simulate", ".", "--link", "1Gbps")
    assert done.returncode != 0 and "--partial reads what is whole" in done.stderr
    made, left = trace_calls.workload(trace_reader.read(tmp_path, partial=True))
    kinds = [Counter(c.op for c in p if c.op != "compute") for p in made.programs]
    assert kinds[0] == {"isend": 3, "recv": 3, "complete": 3, "allreduce": 2}
    assert kinds[1] == {"isend": 3, "recv": 3, "complete": 2, "allreduce": 2}
    assert left.counts["calls after the end of a killed rank's trace"] > 0
    shown = wirepress_in("trace", "show", ".", "--partial")
    assert shown.returncode == 0 and "cut" in shown.stdout, shown.stderr


def test_ranks_that_were_killed_at_once(tmp_path: Path) -> None:
    whole = File(0, 2).comm(0, 1).calls(call("MPI_Barrier", 1, 2)).write(tmp_path).read_bytes()
    path = tmp_path / "job-1.wpt"
    for data in (b"", whole[:50], whole[:64], whole[:200]):
        path.write_bytes(data)
        with pytest.raises(TruncatedError, match=r"job-1\.wpt: the rank ended before its trace"):
            trace_reader.read(tmp_path, partial=True)


def test_ranks_that_shared_a_core_computed_as_much_as_it_did(tmp_path: Path) -> None:
    """Rank 0 computes from 1 to 5 ms, rank 1 from 3 to 9, on one core: 3 and 5 ms of it."""
    records = [
        [call("MPI_Barrier", 0, 1), call("MPI_Barrier", 5, 10)],
        [call("MPI_Barrier", 0, 3), call("MPI_Barrier", 9, 10)],
    ]

    def computed(**meta: str) -> list[float]:
        made, _ = trace_calls.workload(pair(tmp_path, *records, **meta))
        return [sum(c.seconds for c in program) for program in made.programs]

    assert computed() == pytest.approx([4e-3, 6e-3])
    assert computed(machine="m", cores="0") == pytest.approx([3e-3, 5e-3])
    assert computed(machine="m", cores="0,4-5") == pytest.approx([4e-3, 6e-3])
    with pytest.raises(CorruptError, match=r'"cores" is .many.; numbers like 0-3,8'):
        computed(machine="m", cores="many")


def test_samples_are_weighed(tmp_path: Path) -> None:
    file = File().comm(0)
    for i in range(8):
        file.sample(bytes([i]) * 100, 100)
    for i in range(8, 12):
        file.sample(bytes([i]) * 100, 400)
    job = trace_reader.read(file.write(tmp_path))
    ((dtype, data),) = trace_reader.samples(job)
    assert dtype == "float32"
    assert sorted(set(data)) == [0, 7, 8, 9, 10, 11]
    (sample,) = plan.samples_of(job)
    # four bytes that stand for half as much as the largest ones leave these as they are
    odd = trace_reader.read(file.sample(bytes(4), 200).write(tmp_path, "odd.wpt"))
    ((_, more),) = trace_reader.samples(odd)
    assert sorted(set(more)) == sorted(set(data)) and len(more) <= len(data) + 4
    assert sample.floats and sample.view.shape == (len(data) // 4,)


def ring_job(folder: Path, n: int, iterations: int, size: int = 1 << 20) -> trace_reader.Job:
    """A training by hand: computes 5 ms, sums, passes a message round."""
    rng = np.random.default_rng(3)
    for rank in range(n):
        records = []
        for i in range(iterations):
            at = 20.0 * i
            records += [
                call("MPI_Irecv", at + 5, at + 5.1, peer=(rank - 1) % n, tag=2, received=size,
                     request=2 * i + 1),
                call("MPI_Isend", at + 5.1, at + 5.2, peer=(rank + 1) % n, tag=2, sent=size,
                     request=2 * i + 2),
                call("MPI_Waitall", at + 6, at + 9, count=2),
                call("completion", at + 9, at + 9, request=2 * i + 1, peer=(rank - 1) % n, tag=2,
                     received=size),
                call("completion", at + 9, at + 9, request=2 * i + 2),
                call("MPI_Allreduce", at + 10, at + 20, sent=4 * size, received=4 * size),
            ]  # fmt: skip
        file = File(rank, n).comm(*range(n))
        for begin in range(0, len(records), 1024):
            file.calls(*records[begin : begin + 1024])
        values = np.round(rng.normal(size=50000), 1).astype("f4")
        file.sample(values.tobytes(), 10**6).write(folder)
    return trace_reader.read(folder)


def test_chrome_keeps_the_formats_rules(tmp_path: Path) -> None:
    """Trace Event Format: fields of each phase; asynchronous slices and arrows come in pairs."""
    text = io.StringIO()
    trace_export.write_chrome(ring_job(tmp_path, 4, 5), text)
    events = json.loads(text.getvalue())["traceEvents"]
    phases = Counter(event["ph"] for event in events)
    assert phases == {"M": 8, "X": 4 * 5 * 4, "b": 40, "e": 40, "s": 20, "f": 20}
    spans: dict[Any, list[tuple[float, float]]] = {}
    pairs: dict[Any, list[Any]] = {}
    for event in events:
        assert isinstance(event["pid"], int) and isinstance(event["name"], str)
        if event["ph"] == "M":
            continue
        assert isinstance(event["ts"], float) and event["ts"] >= 0 and event["cat"]
        if event["ph"] == "X":
            assert event["dur"] >= 0
            spans.setdefault((event["pid"], event["tid"]), []).append(
                (event["ts"], event["ts"] + event["dur"])
            )
        else:
            key = event["cat"], event["id"], event["name"]
            pairs.setdefault(key, []).append(event)
    for several in spans.values():  # slices of one track nest or follow each other
        several.sort()
        assert all(a[1] <= b[0] + 1e-6 for a, b in itertools.pairwise(several))
    for begin, end in pairs.values():
        assert begin["ph"] + end["ph"] in ("be", "sf") and begin["ts"] <= end["ts"]
    arrows = [(a["pid"], b["pid"]) for a, b in pairs.values() if a["ph"] == "s"]
    assert Counter(arrows) == {(i, (i + 1) % 4): 5 for i in range(4)}


def test_csv(tmp_path: Path) -> None:
    text = io.StringIO()
    trace_export.write_csv(ring_job(tmp_path, 2, 3), text)
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert len(rows) == 2 * 3 * 6
    assert (
        rows[0]["call"] == "MPI_Irecv" and rows[0]["peer"] == "1" and rows[0]["type"] == "float32"
    )
    assert sum(int(row["sent"]) for row in rows) == 2 * 3 * 5 * (1 << 20)


@needs_simgrid
def test_smpirun_replays_what_is_exported(wirepress_in, tmp_path: Path) -> None:
    """SimGrid's own replayer takes the files, and needs as long as `simulate`."""
    if shutil.which("smpirun") is None:
        pytest.skip("smpirun is not installed")
    job = ring_job(tmp_path, 4, 8)
    assert (
        wirepress_in("trace", "export", ".", "--format", "simgrid-ti", "-o", "ti").returncode == 0
    )
    rate = 1e8
    (tmp_path / "platform.xml").write_text(
        '<?xml version="1.0"?>\n'
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
        '<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3" '
        f'speed="1Gf" bw="{rate}Bps" lat="1us" sharing_policy="SPLITDUPLEX"/>\n</platform>\n'
    )
    (tmp_path / "hosts").write_text("".join(f"n{rank}\n" for rank in range(4)))
    options = "smpi/bw-factor:0:1 smpi/lat-factor:0:1 network/TCP-gamma:0 network/crosstraffic:0 "
    options += "network/weight-S:0 smpi/allreduce:lr"
    command = ["smpirun", "-np", "4", "-platform", "platform.xml", "-hostfile", "hosts",
               "-replay", "ti/traces", *(f"--cfg={x}" for x in options.split()),
               "--log=smpi_kernel.thresh:warning"]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    text = done.stdout + done.stderr
    assert done.returncode == 0, text
    theirs = next(
        float(line.rsplit(maxsplit=1)[-1])
        for line in text.splitlines()
        if "Simulation time" in line
    )
    made, _ = trace_calls.workload(job)
    (ours,) = simulate.run([simulate.Job(made, simulate.Network(rate, 2e-6))])
    assert theirs == pytest.approx(ours.seconds, rel=0.01)
    assert calls.read_ti(tmp_path / "ti").n_ranks == 4


@needs_simgrid
@pytest.mark.parametrize("n", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_trace_is_simulated(wirepress_in, tmp_path: Path, n: int) -> None:
    """337 steps, at two link rates, raw and by a codec that is measured on the trace's samples."""
    ring_job(tmp_path, n, 337 if n == 4 else 20)
    done = wirepress_in("simulate", ".", "--sweep", "1Gbps", "100Gbps", "--recipes", "zstd:1",
                        "--seconds", "0.02", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    rows = body["rows"]
    assert [row["codec"] for row in rows] == [None, "zstd:1"] * 2
    iterations = 337 if n == 4 else 20
    ring = 2 * (n - 1) / n * 4 * (1 << 20) * 8
    step = 0.006 + ring / 1e9 + max((1 << 20) * 8 / 1e9 - 0.0008, 0)
    assert rows[0]["seconds"] == pytest.approx(iterations * step, rel=0.1)
    assert rows[1]["ratio"] > 1.5 and rows[1]["speed_up"] > 0.99
    assert rows[2]["seconds"] < rows[0]["seconds"] / 2
    assert body["traced_seconds"] == pytest.approx(iterations * 0.02 - 0.005)


@needs_simgrid
def test_a_trace_is_replayed_with_the_clocks_of_a_core(wirepress_in, tmp_path: Path) -> None:
    """A slow clock makes the job slow by the cycles that the samples take."""
    if not any(e.name == "rtl" and e.available for e in wirepress.engines()):
        pytest.skip("built without the simulated cores")
    ring_job(tmp_path, 2, 4)
    found = {}
    for clock in ("250MHz", "1MHz"):
        done = wirepress_in("simulate", ".", "--link", "10Gbps", "--engine", "rtl:lz4", "--clock",
                            clock, "--no-bypass", "--json")  # fmt: skip
        assert done.returncode == 0, done.stderr
        raw, found[clock] = json.loads(done.stdout)["rows"]
        assert raw["codec"] is None and found[clock]["codec"] == "lz4"
    assert found["1MHz"]["ratio"] == found["250MHz"]["ratio"] > 1
    cycles = 4 * 2 * (1 << 20) / 8  # at least: of 4 rounds, in 8 bytes a clock
    assert found["1MHz"]["seconds"] - found["250MHz"]["seconds"] > cycles * (1e-6 - 4e-9)


def test_plan_from_a_trace(wirepress_in, tmp_path: Path) -> None:
    ring_job(tmp_path, 4, 10)
    flags = ("--link", "1Gbps", "--recipes", "zstd:1", "--engine", "cpu", "--seconds", "0.02")
    done = wirepress_in("plan", "--trace", ".", *flags, "--json")
    assert done.returncode == 0, done.stderr
    body = json.loads(done.stdout)
    request = body["request"]
    assert request["workers"] == 4 and request["scheme"] == "ring"
    assert request["size"] == 10 * 4 * (1 << 20) and request["bucket"] == 4 * (1 << 20)
    assert request["compute"] == pytest.approx(10 * 0.0018 + 9 * 0.005, rel=1e-3)
    assert body["options"][0]["ratio_data"] == "the sample"


def test_plan_says_what_of_a_trace_it_leaves_out(wirepress_in, tmp_path: Path) -> None:
    flags = ("--link", "1Gbps", "--recipes", "zstd:1", "--engine", "cpu", "--seconds", "0.02")
    for size, code in ((4000, 0), (4_000_000, 2)):
        for rank in range(2):
            file = File(rank, 2).comm(0, 1)
            file.calls(
                call("MPI_Alltoall", 1, 2, sent=size, received=size),
                call("MPI_Allreduce", 2, 3, sent=100_000, received=100_000),
            )
            file.sample(np.zeros(1000, "f4").tobytes(), 10**6).write(tmp_path)
        done = wirepress_in("plan", "--trace", ".", *flags)
        assert done.returncode == code, done.stderr
        assert "in alltoall" in done.stderr, done.stderr
        assert ("wirepress simulate" in done.stderr) == bool(code)


def test_the_command(wirepress_in, tmp_path: Path) -> None:
    ring_job(tmp_path, 2, 3)
    shown = wirepress_in("trace", "show", ".")
    assert shown.returncode == 0, shown.stderr
    assert "MPI_Allreduce" in shown.stdout and "2 ranks" in shown.stdout
    body = json.loads(wirepress_in("trace", "show", ".", "--json").stdout)
    assert body["calls"][0]["call"] == "MPI_Allreduce" and body["calls"][0]["count"] == 6
    assert (
        wirepress_in("trace", "export", ".", "--format", "chrome", "-o", "t.json").returncode == 0
    )
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    for words, said in (
        ((), "give the launcher"),
        (("export", ".", "--format", "simgrid-ti"), "give it by -o"),
        (("show", "nowhere"), "nowhere: No such file"),
        (("-o", ".", "--", "mpirun"), "holds a trace"),
    ):
        done = wirepress_in("trace", *words)
        assert done.returncode in (1, 2) and said in done.stderr, (words, done.stderr)
    for words in (("--help",), ("show", "--help"), ("export", "--help")):
        assert "examples:" in wirepress_in("trace", *words).stdout
