# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a job do: the calls between a trace, or a made-up job, and the simulator.

A reader of traces makes a `Workload`; `simulate` replays it. Here are the reader and writer of
SimGrid's time-independent traces, and a synthetic training.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from wirepress.errors import ParameterError
from wirepress.sim import models

SPEED = 1e9  # flops a second of a rank where a trace counts flops


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """One call of one rank.

    Attributes:
        op: a key of OPS.
        size: bytes: of the message; of every rank's vector (allreduce, reduce, bcast,
            reducescatter); of each rank's part (allgather, gather, scatter, alltoall).
        seconds: of compute and sleep.
        peer: the other rank of a message; the root; the source of what `wait` waits for.
        target: the receiver of what `wait` waits for.
        tag: of a message.
        request: number, within its rank, of what a non-blocking call starts and `complete` waits
            for; 0: `wait` or `waitall` does.
    """

    op: str
    size: float = 0.0
    seconds: float = 0.0
    peer: int = 0
    target: int = 0
    tag: int = 0
    request: int = 0

    def row(self) -> list[Any]:
        """As replay.py takes it."""
        return [self.op, *(getattr(self, name) for name in OPS[self.op])]


OPS: dict[str, tuple[str, ...]] = {
    "compute": ("seconds",),
    "sleep": ("seconds",),
    **dict.fromkeys(("send", "recv"), ("peer", "size", "tag")),
    **dict.fromkeys(("isend", "irecv"), ("peer", "size", "tag", "request")),
    "complete": ("request",),
    "wait": ("peer", "target", "tag"),
    "waitall": (),
    "allreduce": ("size",),
    "bcast": ("size", "peer"),
    "reduce": ("size", "peer"),
    "allgather": ("size",),
    "reducescatter": ("size",),
    "alltoall": ("size",),
    "gather": ("size", "peer"),
    "scatter": ("size", "peer"),
    "barrier": (),
}
"""What each call needs."""

_LOCAL = {"compute", "sleep", "send", "recv", "isend", "irecv", "wait", "waitall", "complete"}
NONBLOCKING = frozenset("i" + op for op in OPS if op not in _LOCAL)
OPS |= {op: (*OPS[op[1:]], "request") for op in NONBLOCKING}


@dataclasses.dataclass
class Workload:
    """A job of `n_ranks`. `programs`: one for all ranks, or one for each; run `repeat` times."""

    name: str
    n_ranks: int
    programs: list[list[Call]]
    repeat: int = 1

    def check(self) -> None:
        """Raises ParameterError where it could not end: sends without receives, ranks out of range,
        collectives that are not the same on all ranks."""
        if len(self.programs) not in (1, self.n_ranks):
            raise ParameterError(
                f"{self.name}: {len(self.programs)} programs for {self.n_ranks} ranks"
            )
        for rank, calls in enumerate(self.programs):
            for i, call in enumerate(calls):
                if not (0 <= call.peer < self.n_ranks and 0 <= call.target < self.n_ranks):
                    raise ParameterError(
                        f"{self.name}: rank {rank}, call {i}: {call.op} names rank "
                        f"{max(call.peer, call.target)}, there are {self.n_ranks}"
                    )
                if call.size < 0 or call.seconds < 0:
                    raise ParameterError(f"{self.name}: rank {rank}, call {i}: negative: {call}")
        self._check_messages()
        self._check_collectives()

    def _check_messages(self) -> None:
        open_messages: Counter[tuple[int, int, int]] = Counter()
        for rank, calls in enumerate(self.programs):
            for call in calls:
                if call.op in ("send", "isend"):
                    open_messages[rank, call.peer, call.tag] += 1
                elif call.op in ("recv", "irecv"):
                    open_messages[call.peer, rank, call.tag] -= 1
        for (source, target, tag), n in open_messages.items():
            if n:
                which = "sends without a receive" if n > 0 else "receives without a send"
                raise ParameterError(
                    f"{self.name}: {abs(n)} {which} from rank {source} to {target}, tag {tag}"
                )

    def _check_collectives(self) -> None:
        def names(calls: Iterable[Call]) -> list[str]:
            return [call.op for call in calls if call.op not in _LOCAL]

        first = names(self.programs[0])
        for rank, calls in enumerate(self.programs[1:], 1):
            other = names(calls)
            if other != first:
                i = next(
                    (i for i, (a, b) in enumerate(zip(first, other, strict=False)) if a != b),
                    min(len(first), len(other)),
                )
                have = [(x[i] if i < len(x) else "none") for x in (first, other)]
                raise ParameterError(
                    f"{self.name}: collective {i} is {have[0]} on rank 0 and {have[1]} on rank "
                    f"{rank}: traces of different jobs, or a cut one?"
                )

    @property
    def overlaps(self) -> bool:
        return any(call.op in NONBLOCKING for calls in self.programs for call in calls)


def training(
    n_ranks: int, size: float, compute: float, bucket: float, overlap: bool, iterations: int
) -> Workload:
    """Steps of data-parallel training: `compute` seconds, and an Allreduce of `size` bytes in
    buckets. With overlap a bucket is sent as soon as its share of computing is done, as by DDP."""
    sizes = models.bucket_sizes(size, bucket)
    calls: list[Call] = []
    if overlap:
        for part in sizes:
            calls += [Call("compute", seconds=compute * part / size), Call("iallreduce", size=part)]
        calls.append(Call("waitall"))
    else:
        calls = [Call("compute", seconds=compute), *(Call("allreduce", size=s) for s in sizes)]
    return Workload("training", n_ranks, [calls], iterations)


# ---- SimGrid's time-independent traces --------------------------------------------------------

# its numbers of MPI's types (smpi_replay.cpp), by size
_TYPE_SIZES = {0: 8, 1: 4, 2: 1, 3: 2, 4: 8, 5: 4, 6: 1}
_IGNORED = {"init", "finalize", "comm_size", "comm_dup", "location"}


class _Line:
    """The words of a line, and what is wrong with it."""

    def __init__(self, path: Path, number: int, text: str) -> None:
        self.path, self.number, self.words = path, number, text.split()

    def fail(self, why: str) -> ParameterError:
        return ParameterError(f'{self.path}:{self.number}: "{" ".join(self.words)}": {why}')

    def number_at(self, i: int, what: str, default: float | None = None) -> float:
        if i >= len(self.words):
            if default is None:
                raise self.fail(f"{what} is missing: is the file cut?")
            return default
        try:
            value = float(self.words[i])
        except ValueError:
            raise self.fail(f'{what} is "{self.words[i]}", no number') from None
        if not 0 <= value < float("inf"):
            raise self.fail(f"{what} must be finite and not negative")
        return value

    def bytes_at(self, i: int, type_at: int, unit: int) -> float:
        size = unit
        if type_at < len(self.words):
            number = int(self.number_at(type_at, "the type"))
            if number not in _TYPE_SIZES:
                raise self.fail(f"type {number} is not known; known: {sorted(_TYPE_SIZES)}")
            size = _TYPE_SIZES[number]
        return self.number_at(i, "the count") * size


def _parse(line: _Line, op: str, unit: int, flops: float) -> Call:
    at = line.number_at
    if op == "compute":
        return Call(op, seconds=at(2, "the amount") / flops)
    if op == "sleep":
        return Call(op, seconds=at(2, "the time"))
    if op in ("send", "recv", "isend", "irecv"):
        tag = int(at(3, "the tag"))
        return Call(op, line.bytes_at(4, 5, unit), peer=int(at(2, "the rank")), tag=tag)
    if op == "wait":
        source, target = int(at(2, "the source")), int(at(3, "the target"))
        return Call(op, peer=source, target=target, tag=int(at(4, "the tag")))
    if op == "allreduce":
        return Call(op, line.bytes_at(2, 4, unit))
    if op == "bcast":
        return Call(op, line.bytes_at(2, 4, unit), peer=int(at(3, "the root", 0)))
    if op == "reduce":
        return Call(op, line.bytes_at(2, 5, unit), peer=int(at(4, "the root", 0)))
    if op in ("allgather", "alltoall"):
        return Call(op, line.bytes_at(2, 4, unit))
    if op in ("gather", "scatter"):
        return Call(op, line.bytes_at(2, 5, unit), peer=int(at(4, "the root", 0)))
    return Call(op)


def _program(path: Path, lines: Iterable[tuple[int, str]], flops: float) -> Iterator[Call]:
    unit = 1
    for number, text in lines:
        line = _Line(path, number, text)
        if len(line.words) < 2:
            raise line.fail("a line is RANK CALL ...: is the file cut?")
        op = line.words[1].lower()
        if op == "init":
            unit = 8 if len(line.words) > 2 else 1  # MPI_DOUBLE or MPI_BYTE by default
        if op in _IGNORED:
            continue
        if op == "reducescatter":
            raise line.fail("reducescatter has no one meaning in these traces; not read")
        if op not in OPS or op in NONBLOCKING or op == "complete":
            known = (o for o in OPS if o not in NONBLOCKING and o != "complete")
            raise line.fail(f"unknown call; known: {', '.join(known)}")
        yield _parse(line, op, unit, flops)


def read_ti(folder: str | Path, flops: float = SPEED) -> Workload:
    """SimGrid's time-independent traces: the files of a folder, or one file for all ranks. Every
    line begins with its rank; `flops` a second turn amounts of computing to time.

    Raises ParameterError with file and line of what cannot be read or does not fit together,
    OSError where files cannot be opened.
    """
    path = Path(folder)
    files = [path]
    if path.is_dir():  # write_ti's list of the others is none of them
        files = sorted(p for p in path.iterdir() if p.is_file())
        files = [p for p in files if p.name != "traces"] or files
    lines: dict[int, tuple[Path, list[tuple[int, str]]]] = {}
    for file in files:
        try:
            content = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise ParameterError(f"{file}: no text trace (byte {error.start})") from None
        for number, text in enumerate(content, 1):
            if not text.strip() or text.lstrip().startswith("#"):
                continue
            rank = re.match(r"\s*p?(\d+)\s", text + " ")
            if rank is None:
                raise ParameterError(f'{file}:{number}: "{text[:60]}" does not begin with a rank')
            owner, found = lines.setdefault(int(rank[1]), (file, []))
            if owner != file:
                raise ParameterError(
                    f"{file}:{number}: rank {rank[1]} is already in {owner}: traces of two jobs?"
                )
            found.append((number, text))
    if not lines:
        raise ParameterError(f"{path}: no trace in it")
    n = len(lines)
    if set(lines) != set(range(n)):
        missing = sorted(set(range(max(lines) + 1)) - set(lines))
        raise ParameterError(f"{path}: ranks 0 to {max(lines)}, but none of {missing[:5]}")
    programs = [list(_program(*lines[rank], flops)) for rank in range(n)]
    workload = Workload(str(folder), n, programs)
    workload.check()
    return workload


def write_ti(workload: Workload, folder: Path, flops: float = SPEED) -> None:
    """The same for `smpirun -replay`: a file per rank, and `traces` that lists them. Non-blocking
    collectives cannot be written."""
    names = []
    for rank in range(workload.n_ranks):
        calls = workload.programs[rank if len(workload.programs) > 1 else 0]
        lines = [f"{rank} init"]
        for _ in range(workload.repeat):
            lines += [f"{rank} {_ti(call, flops)}" for call in _without_requests(rank, calls)]
        lines.append(f"{rank} finalize")
        path = folder / f"rank-{rank}.ti"
        path.write_text("\n".join(lines) + "\n")
        names.append(str(path.resolve()))
    (folder / "traces").write_text("\n".join(names) + "\n")


def _without_requests(rank: int, calls: list[Call]) -> Iterator[Call]:
    """`wait` for `complete`; non-blocking collectives where they are waited for, which is later
    than where they begin. Requests that nothing completes are waited for at the end."""
    pending: dict[int, Call] = {}
    for call in calls:
        if call.op in NONBLOCKING and call.request:
            pending[call.request] = dataclasses.replace(call, op=call.op[1:], request=0)
        elif call.op == "complete":
            yield pending.pop(call.request)
        else:
            if call.request:
                ends = (rank, call.peer) if call.op == "isend" else (call.peer, rank)
                pending[call.request] = Call("wait", peer=ends[0], target=ends[1], tag=call.tag)
            yield call
    yield from (call for call in pending.values() if call.op != "wait")
    if pending:
        yield Call("waitall")


def _ti(call: Call, flops: float) -> str:
    size = round(call.size)
    if call.op == "compute":
        return f"compute {call.seconds * flops:.17g}"
    if call.op == "sleep":
        return f"sleep {call.seconds:.17g}"
    if call.op in ("send", "recv", "isend", "irecv"):
        return f"{call.op} {call.peer} {call.tag} {size} 6"
    if call.op == "wait":
        return f"wait {call.peer} {call.target} {call.tag}"
    if call.op == "allreduce":
        return f"allreduce {size} 0 6"
    if call.op == "bcast":
        return f"bcast {size} {call.peer} 6"
    if call.op == "reduce":
        return f"reduce {size} 0 {call.peer} 6"
    if call.op in ("allgather", "alltoall"):
        return f"{call.op} {size} {size} 6 6"
    if call.op in ("gather", "scatter"):
        return f"{call.op} {size} {size} {call.peer} 6 6"
    if call.op in ("waitall", "barrier"):
        return call.op
    raise ParameterError(f"{call.op} has no form in time-independent traces")
