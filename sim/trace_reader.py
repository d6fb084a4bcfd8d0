# SPDX-License-Identifier: Apache-2.0
"""Reads the traces that ranks of an MPI job leave (spec/trace.md), and believes nothing of them.

`read` gives a job: the records of every rank as a numpy array of RECORD, on one clock. What is cut,
damaged or of another job is refused with the file, the place and what was expected there.
"""

from __future__ import annotations

import dataclasses
import json
import re
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wirepress import api, arrays
from wirepress.errors import CorruptError, ParameterError, TruncatedError, WirepressError

SUFFIX = ".wpt"
VERSION = 1
RECORD = np.dtype(
    [
        ("begin", "<u8"), ("end", "<u8"), ("count", "<u8"), ("sent", "<u8"), ("received", "<u8"),
        ("request", "<u8"), ("peer", "<i4"), ("tag", "<i4"), ("comm", "<u4"), ("call", "u1"),
        ("flags", "u1"), ("dtype", "u1"), ("op", "u1"),
    ]
)  # fmt: skip
"""One call. Times are nanoseconds since the origin of the rank's file, sizes bytes."""

RECEIVE_HALF, STARTED, FAILED, IN_PLACE, PER_NEIGHBOR, UNKNOWN, CANCELLED = (
    1 << i for i in range(7)
)
PROC_NULL, ANY_SOURCE, ROOT = -1, -2, -3
OPS = ("", "sum", "prod", "max", "min", "land", "lor", "lxor", "band", "bor", "bxor", "maxloc",
       "minloc")  # fmt: skip

_HEAD = struct.Struct("<8sII16sIIQQQ")
_BLOCK = struct.Struct("<4sHHIIIIQQQQQ")
_INDEX = np.dtype(
    [("offset", "<u8"), ("kind", "<u2"), ("thread", "<u2"), ("n", "<u4"), ("first", "<u8"),
     ("last", "<u8")]
)  # fmt: skip
_CLOCK = struct.Struct("<QqQII")
_SAMPLE = struct.Struct("<QQQIBB2x")
_TRAILER = struct.Struct("<8sQQ")
_META, _CALLS, _COMM, _SAMPLES, _CLOCKS, _INDEXES = range(1, 7)
_CORES = re.compile(r"(\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*)?")  # as the kernel lists them
_MOST_RAW = 1 << 28
_NO_TIME = 1 << 61  # ns: 73 years
_MOST_RANKS = 1 << 20


def fnv(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


@dataclasses.dataclass(frozen=True)
class Communicator:
    """A communicator as one rank knows it. `members` and `remote` (of an intercommunicator) are
    ranks of the job, -1 where another job's. `ordinal`: how many with the same groups this rank had
    used before; with the groups it names the communicator on all members."""

    number: int
    rank: int
    members: tuple[int, ...]
    remote: tuple[int, ...]
    ordinal: int

    @property
    def peers(self) -> tuple[int, ...]:
        return self.remote or self.members

    @property
    def key(self) -> tuple[Any, ...]:
        groups = sorted([self.members, self.remote]) if self.remote else [self.members]
        return (*groups, self.ordinal)


@dataclasses.dataclass(frozen=True)
class Sample:
    """A piece of a payload. `stands_for`: bytes that were sent since the one before."""

    at: int
    stands_for: int
    message_size: int
    call: int
    dtype: int
    data: bytes


@dataclasses.dataclass
class Rank:
    """What one file holds. `records` in the order of their begin; `threads` beside them."""

    path: Path
    job: bytes
    rank: int
    size: int
    realtime: int
    monotonic: int
    meta: dict[str, Any]
    records: np.ndarray
    threads: np.ndarray
    comms: dict[int, Communicator]
    samples: list[Sample]
    clocks: list[tuple[int, int, int]]  # (time here, difference to rank 0's, error), ns
    whole: bool  # False: the rank ended before its trace

    @property
    def calls(self) -> list[str]:
        names: list[str] = self.meta["calls"]
        return names


@dataclasses.dataclass
class Job:
    """All ranks. `begin` and `end`: seconds since the job's first record, by rank."""

    ranks: list[Rank]
    begin: list[np.ndarray]
    end: list[np.ndarray]
    clock_error: float  # seconds

    @property
    def n_ranks(self) -> int:
        return len(self.ranks)

    @property
    def nodes(self) -> list[int]:
        nodes: list[int] = self.ranks[0].meta["nodes"]
        return nodes

    @property
    def seconds(self) -> float:
        return max((float(end.max()) for end in self.end if len(end)), default=0.0)


# ---- one file -------------------------------------------------------------------------------


class _File:
    """A file's bytes, and where in them we are."""

    def __init__(self, path: Path) -> None:
        self.path, self.data = path, memoryview(path.read_bytes())
        self.at, self.block = 0, -1
        self.seed = b""
        self.codec = api.Compressor(threads=1)

    def place(self) -> str:
        where = "head" if self.block < 0 else f"block {self.block} at byte {self.at}"
        return f"{self.path}: {where}"

    def corrupt(self, why: str) -> CorruptError:
        return CorruptError(f"{self.place()}: {why}")

    def cut(self, size: int) -> TruncatedError:
        return TruncatedError(
            f"{self.place()}: {size} bytes were expected, {len(self.data) - self.at} are there: "
            "is the file cut? (--partial reads what is whole)"
        )

    def take(self, size: int, at: int) -> memoryview:
        if len(self.data) - at < size:
            raise self.cut(at + size - self.at)
        return self.data[at : at + size]


@dataclasses.dataclass
class _Block:
    kind: int
    thread: int
    n: int
    first: int
    last: int
    offset: int
    end: int
    payload: memoryview


def _head(file: _File) -> tuple[bytes, int, int, int, int]:
    head = bytes(file.take(_HEAD.size, 0))
    magic, version, record, job, rank, size, realtime, monotonic, check = _HEAD.unpack(head)
    if magic != b"WPRTRACE":
        raise file.corrupt(f"no trace: it begins with {magic!r}, not with b'WPRTRACE'")
    if version != VERSION:
        raise file.corrupt(f"version {version}, this reader knows {VERSION}")
    if check != fnv(head[:-8]):
        raise file.corrupt("its checksum does not match")
    if record != RECORD.itemsize or not rank < size <= _MOST_RANKS or monotonic >= _NO_TIME:
        raise file.corrupt(
            f"records of {record} bytes, rank {rank} of {size}, origin {monotonic}: expected "
            f"{RECORD.itemsize}, a rank below the size, a time"
        )
    file.seed = head[16:36]
    return job, rank, size, realtime, monotonic


def _expand(file: _File, frame: memoryview, raw_size: int) -> memoryview:
    if raw_size > _MOST_RAW:
        raise file.corrupt(f"{raw_size} bytes of payload; at most {_MOST_RAW} may be")
    try:
        info = file.codec.inspect(frame)
        if info.raw_size != raw_size:
            raise file.corrupt(f"its frame holds {info.raw_size} bytes, {raw_size} were expected")
        payload = memoryview(file.codec.decompress(frame, raw=True))
    except WirepressError as error:
        if isinstance(error, CorruptError) and str(error).startswith(str(file.path)):
            raise
        raise file.corrupt(f"its frame cannot be read: {error}") from None
    return payload


def _blocks(file: _File) -> Iterator[_Block]:
    """Every block, checked, up to the trailer; raises where one is damaged or cut."""
    at = _HEAD.size
    while True:
        file.at, file.block = at, file.block + 1
        if at == len(file.data):
            raise file.cut(_BLOCK.size)
        head = bytes(file.take(_BLOCK.size, at))
        magic, kind, thread, sequence, stored, n, zero, first, last, raw, offset, check = (
            _BLOCK.unpack(head)
        )
        if magic != b"WPTb":
            raise file.corrupt(f"b'WPTb' was expected, {magic!r} is there")
        if check != fnv(file.seed + head[:-8]):
            raise file.corrupt("its checksum does not match: damaged, or of another trace")
        if sequence != file.block or offset != at or zero or not _META <= kind <= _INDEXES:
            raise file.corrupt(
                f"number {sequence}, offset {offset}, kind {kind}: expected number {file.block}, "
                f"offset {at} and a kind from {_META} to {_INDEXES}"
            )
        payload = _expand(file, file.take(stored, at + _BLOCK.size), raw)
        end = at + _BLOCK.size + stored
        yield _Block(kind, thread, n, first, last, at, end, payload)
        at = end
        if kind == _INDEXES:
            return


def _meta(file: _File, block: _Block, size: int) -> dict[str, Any]:
    try:
        meta = json.loads(bytes(block.payload))
    except (ValueError, RecursionError) as error:
        raise file.corrupt(f"no JSON: {error}") from None
    kinds = {"host": str, "nodes": list, "calls": list, "dtypes": list, "multiple": bool,
             "command": str, "mpi": str}  # fmt: skip
    for key, kind in kinds.items():
        if not isinstance(meta, dict) or not isinstance(meta.get(key), kind):
            raise file.corrupt(f'"{key}" must be a {kind.__name__}')
    texts = [*meta["calls"], *meta["dtypes"]]
    if not all(isinstance(text, str) for text in texts) or len(meta["calls"]) > 256:
        raise file.corrupt("the names of calls and types must be texts")
    nodes = meta["nodes"]
    if len(nodes) != size or not all(type(n) is int and 0 <= n < size for n in nodes):
        raise file.corrupt(f'"nodes" must be {size} numbers of nodes')
    if not all(isinstance(meta.setdefault(key, ""), str) for key in ("machine", "cores")):
        raise file.corrupt('"machine" and "cores" must be texts')
    if not _CORES.fullmatch(meta["cores"]):
        raise file.corrupt(f'"cores" is {meta["cores"][:60]!r}; numbers like 0-3,8 were expected')
    return meta


def cores_of(rank: Rank) -> set[int]:
    """The cores that a rank could use; none: not known."""
    found: set[int] = set()
    for part in filter(None, rank.meta["cores"].split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _communicator(file: _File, block: _Block, size: int, known: Counter[Any]) -> Communicator:
    if len(block.payload) % 4 or len(block.payload) < 16:
        raise file.corrupt(f"a communicator of {len(block.payload)} bytes")
    number, rank, local, remote, *members = np.frombuffer(block.payload, "<i4").tolist()
    if local < 1 or remote < 0 or local + remote != len(members) or not 0 <= rank < local:
        raise file.corrupt(
            f"rank {rank} of {local} and {remote} members, {len(members)} are listed"
        )
    due = known.total() + 1
    if number != due or not all(-1 <= member < size for member in members):
        raise file.corrupt(f"communicator {number}; {due} was expected, with ranks below {size}")
    groups = tuple(members[:local]), tuple(members[local:])
    known[groups] += 1
    return Communicator(number, rank, *groups, known[groups] - 1)


def _first(bad: np.ndarray) -> int:
    return int(np.argmax(bad))


def _check_calls(
    file: _File, block: _Block, meta: dict[str, Any], comms: dict[int, Communicator]
) -> np.ndarray:
    if len(block.payload) != block.n * RECORD.itemsize or not block.n:
        raise file.corrupt(f"{len(block.payload)} bytes are not {block.n} records")
    records = np.frombuffer(block.payload, RECORD)
    sizes = np.full(max(comms, default=0) + 1, -1)
    sizes[0] = 0
    for number, comm in comms.items():
        sizes[number] = len(comm.peers)
    unknown = records["comm"] >= len(sizes)
    peers = np.where(unknown, 0, sizes[np.where(unknown, 0, records["comm"])])
    good = records["flags"] & FAILED == 0  # what MPI refused may be anything
    wrong = [
        (records["begin"] > records["end"], "it ends before it begins"),
        (records["end"] >= _NO_TIME, "no time"),
        (records["call"] >= len(meta["calls"]), f"{len(meta['calls'])} calls have names"),
        (records["dtype"] >= len(meta["dtypes"]), f"{len(meta['dtypes'])} types have names"),
        (unknown, f"communicators are known up to {len(sizes) - 1}"),
        ((records["peer"] >= peers) & (records["comm"] > 0) & good, "its peer is no member"),
        ((records["peer"] < ROOT) & good, f"a peer is {ROOT} or more"),
        (records["flags"] > 127, "unknown flags"),
    ]
    for bad, why in wrong:
        if bad.any():
            i = _first(bad)
            raise file.corrupt(f"record {i}: {why}: {records[i]}")
    if (int(records["begin"].min()), int(records["end"].max())) != (block.first, block.last):
        raise file.corrupt(f"its records are not from {block.first} to {block.last} ns")
    return records


def _sample(file: _File, block: _Block, meta: dict[str, Any]) -> Sample:
    if len(block.payload) <= _SAMPLE.size:
        raise file.corrupt(f"a sample of {len(block.payload)} bytes")
    at, stands_for, size, zero, call, dtype = _SAMPLE.unpack_from(block.payload)
    data = bytes(block.payload[_SAMPLE.size :])
    named = call < len(meta["calls"]) and dtype < len(meta["dtypes"])
    if zero or not named or size < len(data):
        raise file.corrupt(f"a sample of {len(data)} of {size} bytes, call {call}, type {dtype}")
    if not stands_for:
        raise file.corrupt("a sample that stands for nothing")
    return Sample(at, stands_for, size, call, dtype, data)


def _check_end(file: _File, index: _Block, seen: list[tuple[int, ...]]) -> None:
    entries = [tuple(row) for row in np.frombuffer(index.payload, _INDEX).tolist()]
    if entries != seen:
        i = next((i for i, (a, b) in enumerate(zip(entries, seen, strict=False)) if a != b), None)
        what = f"entry {i} is {entries[i]}, not {seen[i]}" if i is not None else "its length"
        raise file.corrupt(f"the index does not list the blocks before it: {what}")
    trailer = bytes(file.take(_TRAILER.size, index.end))
    magic, offset, check = _TRAILER.unpack(trailer)
    if magic != b"WPTINDEX" or offset != index.offset or check != fnv(file.seed + trailer[:-8]):
        raise file.corrupt("no trailer, or that of another trace, follows the index")
    if more := len(file.data) - index.end - _TRAILER.size:
        raise file.corrupt(f"{more} bytes follow the trailer")


def _check_requests(rank: Rank) -> None:
    records = rank.records
    named = np.array([name.startswith(("MPI_Wait", "MPI_Test")) or name == "completion"
                      for name in rank.calls])  # fmt: skip
    completes = named[records["call"]] & (records["request"] > 0)
    started = np.unique(records["request"][~completes])
    bad = completes & ~np.isin(records["request"], started)
    if bad.any():
        i = _first(bad)
        raise CorruptError(
            f"{rank.path}: record {i} completes request {records['request'][i]}, which nothing "
            "started"
        )


def read_rank(path: str | Path, partial: bool = False) -> Rank:
    """One file. `partial`: one that ends too early is read as far as it goes.

    Raises CorruptError or TruncatedError with the file, the block or record and what was expected,
    OSError where it cannot be opened.
    """
    file = _File(Path(path))
    meta: dict[str, Any] = {}
    comms: dict[int, Communicator] = {}
    groups: Counter[Any] = Counter()
    parts, threads, samples, clocks = [np.empty(0, RECORD)], [np.empty(0, "u2")], [], []
    seen: list[tuple[int, ...]] = []
    whole = True
    try:
        job, number, size, realtime, monotonic = _head(file)
        for block in _blocks(file):
            if (block.kind == _META) != (file.block == 0):
                raise file.corrupt("the first block, and no other, must be the description")
            if block.kind == _META:
                meta = _meta(file, block, size)
            elif block.kind == _COMM:
                comm = _communicator(file, block, size, groups)
                comms[comm.number] = comm
            elif block.kind == _CALLS:
                parts.append(_check_calls(file, block, meta, comms))
                threads.append(np.full(block.n, block.thread, "u2"))
            elif block.kind == _SAMPLES:
                samples.append(_sample(file, block, meta))
            elif block.kind == _CLOCKS:
                if len(block.payload) != _CLOCK.size:
                    raise file.corrupt(f"a clock of {len(block.payload)} bytes")
                at, difference, error, _, _ = _CLOCK.unpack(block.payload)
                if max(at, abs(difference), error) >= _NO_TIME:
                    raise file.corrupt(f"no times: {at}, {difference}, {error}")
                clocks.append((at, difference, error))
            else:
                if len(block.payload) != block.n * _INDEX.itemsize:
                    raise file.corrupt(f"{len(block.payload)} bytes are not {block.n} entries")
                _check_end(file, block, seen)
            seen.append((block.offset, block.kind, block.thread, block.n, block.first, block.last))
    except TruncatedError:
        if not partial:
            raise
        if not meta:
            raise TruncatedError(
                f"{file.path}: the rank ended before its trace had a description: nothing of it "
                "can be read"
            ) from None
        whole = False
    records, thread = np.concatenate(parts), np.concatenate(threads)
    order = np.argsort(records["begin"], kind="stable")
    rank = Rank(
        file.path, job, number, size, realtime, monotonic, meta, records[order], thread[order],
        comms, samples, clocks, whole,
    )  # fmt: skip
    if whole:
        _check_requests(rank)
    return rank


# ---- a job ----------------------------------------------------------------------------------


def trace_files(names: Sequence[str | Path]) -> list[Path]:
    """Files as they are, and those of folders. Raises ParameterError where there is none."""
    found: list[Path] = []
    for name in names:
        path = Path(name)
        inside = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
        if not inside:
            raise ParameterError(f"{path}: no *{SUFFIX} in this folder")
        found += inside
    return found


def is_trace(name: str | Path) -> bool:
    """Whether it is a file or a folder of these traces."""
    path = Path(name)
    return path.suffix == SUFFIX or (path.is_dir() and any(path.glob(f"*{SUFFIX}")))


def _one_job(ranks: list[Rank]) -> list[Rank]:
    by_rank: dict[int, Rank] = {}
    first = ranks[0]
    for rank in ranks:
        if rank.job != first.job or rank.size != first.size:
            raise ParameterError(
                f"{rank.path} is of job {rank.job.hex()[:8]} with {rank.size} ranks, {first.path} "
                f"of job {first.job.hex()[:8]} with {first.size}: traces of different jobs"
            )
        if rank.rank in by_rank:
            raise ParameterError(
                f"{rank.path} and {by_rank[rank.rank].path} are both of rank {rank.rank}"
            )
        by_rank[rank.rank] = rank
    missing = [i for i in range(first.size) if i not in by_rank]
    if missing:
        raise ParameterError(
            f"{first.path.parent}: no trace of rank {', '.join(map(str, missing[:8]))}; the job "
            f"had {first.size}"
        )
    return [by_rank[i] for i in range(first.size)]


def _differences(rank: Rank, leader: Rank, times: np.ndarray) -> np.ndarray:
    """What is to be added to `times` (ns of this rank's host) to have them on rank 0's."""
    if not leader.clocks:
        return np.zeros(len(times), np.int64)
    at = np.array([leader.monotonic + clock[0] for clock in leader.clocks], np.int64)
    difference = np.array([clock[1] for clock in leader.clocks], np.int64)
    base = int(difference[0])
    return base + np.round(np.interp(times - at[0], at - at[0], difference - base)).astype(np.int64)


def read(names: str | Path | Sequence[str | Path], partial: bool = False) -> Job:
    """The traces of all ranks of one job: a folder, or files.

    Raises what read_rank does, and ParameterError for traces of several jobs, two of one rank, or
    none of some rank.
    """
    several = [names] if isinstance(names, (str, Path)) else list(names)
    ranks = _one_job([read_rank(path, partial) for path in trace_files(several)])
    nodes = ranks[0].meta["nodes"]
    begin, end, errors = [], [], [0]
    for rank in ranks:
        leader = ranks[nodes.index(nodes[rank.rank])]
        errors += [clock[2] for clock in leader.clocks]
        origin = np.int64(rank.monotonic)
        for key, list_ in (("begin", begin), ("end", end)):
            times = origin + rank.records[key].astype(np.int64)
            list_.append(times + _differences(rank, leader, times))
    zero = min((int(b[0]) for b in begin if len(b)), default=0)
    return Job(
        ranks,
        [(b - zero) * 1e-9 for b in begin],
        [(e - zero) * 1e-9 for e in end],
        max(errors) * 1e-9,
    )


def _most_times(found: list[Sample]) -> float:
    """Bytes that a byte of a sample stands for, at most, in nine tenths of what was sent."""
    total, so_far = sum(s.stands_for for s in found), 0
    for sample in sorted(found, key=lambda s: s.stands_for / len(s.data)):
        so_far += sample.stands_for
        if so_far >= 0.9 * total:
            break
    return sample.stands_for / len(sample.data)


def sample_types(job: Job) -> list[str]:
    """By number, the element types of samples; "bytes" where the library has no such type."""
    return [name if name in arrays.DTYPES else "bytes" for name in job.ranks[0].meta["dtypes"]]


def samples(job: Job) -> list[tuple[str, bytes]]:
    """(element type, bytes) of payloads, each as much as its share of what was sent: of samples
    that stand for little, taken while the trace was short, some are left out. Short messages that
    stand for much more than they hold (a tenth of what was sent, at most) count less than that."""
    found = [s for rank in job.ranks for s in rank.samples]
    if not found:
        return []
    least = _most_times(found)
    due: dict[int, float] = {}
    kept: dict[int, list[bytes]] = {}
    for sample in found:
        due[sample.dtype] = due.get(sample.dtype, 0.0) + sample.stands_for / len(sample.data)
        if due[sample.dtype] >= least or sample.dtype not in kept:
            kept.setdefault(sample.dtype, []).append(sample.data)
            due[sample.dtype] -= least
    names = sample_types(job)
    return [(names[dtype], b"".join(parts)) for dtype, parts in kept.items()]
