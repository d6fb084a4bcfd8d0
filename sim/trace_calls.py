# SPDX-License-Identifier: Apache-2.0
"""The calls of a traced job, for the simulator and for `plan`.

`workload` follows the trace call by call. What ranks computed is the time in which not all threads
of a rank were in MPI. Messages are matched as MPI matches them; what the trace cannot say is left
out and named in `Left`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from wirepress.sim import trace_reader
from wirepress.sim.calls import Call, Workload
from wirepress.sim.trace_reader import Communicator, Job, Rank

EAGER = 64 << 10  # bytes up to which a send does not wait for its receive (Open MPI's and SMPI's)

_WORLD = {
    "Bcast": "bcast", "Reduce": "reduce", "Allreduce": "allreduce", "Allgather": "allgather",
    "Allgatherv": "allgather", "Gather": "gather", "Gatherv": "gather", "Scatter": "scatter",
    "Scatterv": "scatter", "Alltoall": "alltoall", "Alltoallv": "alltoall",
    "Alltoallw": "alltoall", "Reduce_scatter": "reducescatter",
    "Reduce_scatter_block": "reducescatter", "Barrier": "barrier", "Scan": "scan", "Exscan": "scan",
}  # fmt: skip
_WORLD_OPS = set(_WORLD.values()) - {"scan"}
SENDS = {"Send", "Ssend", "Rsend", "Bsend", "Isend", "Issend", "Irsend", "Ibsend", "Sendrecv",
          "Sendrecv_replace", "Isendrecv", "Isendrecv_replace"}  # fmt: skip
RECEIVES = {"Recv", "Irecv", "Mrecv", "Imrecv"}
_EXCHANGES = {"Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace"}
_BUFFERED = {"Bsend", "Ibsend"}
ENDS = {"Wait", "Test", "Waitany", "Testany"}
_SILENT = {"Waitall", "Waitsome", "Testall", "Testsome", "Probe", "Iprobe", "Mprobe", "Improbe",
           "Request_free", "Cancel", "Request_get_status", "Start"}  # fmt: skip


@dataclasses.dataclass
class Left:
    """What a workload does not have, with counts."""

    counts: Counter[str] = dataclasses.field(default_factory=Counter)

    def __str__(self) -> str:
        return ", ".join(f"{n:,} {what}" for what, n in self.counts.most_common())


@dataclasses.dataclass
class CallKind:
    """What a call's name says."""

    base: str  # without MPI_, I and _init
    blocking: bool
    persistent: bool


def kind_of(name: str) -> CallKind:
    base = name.removeprefix("MPI_")
    persistent = base.endswith("_init")
    base = base.removesuffix("_init")
    if base in ("Isend", "Irecv", "Issend", "Irsend", "Ibsend", "Imrecv", "Isendrecv",
                "Isendrecv_replace"):  # fmt: skip
        return CallKind(base, False, persistent)
    rest = base[1:2].upper() + base[2:]
    if base[:1] == "I" and (rest in _WORLD or rest.startswith("Neighbor")):
        return CallKind(rest, False, persistent)
    return CallKind(base, not persistent, persistent)


# ---- collectives of some of the ranks, as messages -----------------------------------------


class _Members:
    """A rank's part in a collective of `ranks`, as messages with a tag of their own."""

    def __init__(self, ranks: tuple[int, ...], me: int, tag: int, numbers: Iterator[int]) -> None:
        self.ranks, self.me, self.n, self.tag, self.numbers = ranks, me, len(ranks), tag, numbers
        self.calls: list[Call] = []

    def both(self, to: int, source: int, size: float) -> None:
        a, b = next(self.numbers), next(self.numbers)
        to, source = self.ranks[to], self.ranks[source]
        self.calls += [
            Call("irecv", size, peer=source, tag=self.tag, request=a),
            Call("isend", size, peer=to, tag=self.tag, request=b),
            Call("complete", request=b),
            Call("complete", request=a),
        ]

    def send(self, to: int, size: float) -> None:
        self.calls.append(Call("send", size, peer=self.ranks[to], tag=self.tag))

    def recv(self, source: int, size: float) -> None:
        self.calls.append(Call("recv", size, peer=self.ranks[source], tag=self.tag))

    def ring(self, steps: int, size: float) -> None:
        for _ in range(steps):
            self.both((self.me + 1) % self.n, (self.me - 1) % self.n, size)

    def run(self, op: str, size: float, root: int) -> list[Call]:
        """As replay.py does it for all ranks."""
        n, me = self.n, self.me
        if n == 1:
            return []
        at = (me - root) % n
        if op == "allreduce":
            self.ring(2 * (n - 1), size / n)
        elif op == "reducescatter":
            self.ring(n - 1, size / n)
        elif op == "allgather":
            self.ring(n - 1, size)
        elif op == "alltoall":
            for step in range(1, n):
                self.both((me + step) % n, (me - step) % n, size)
        elif op == "barrier":
            step = 1
            while step < n:
                self.both((me + step) % n, (me - step) % n, 1)
                step <<= 1
        elif op == "bcast":
            bit = 1
            while bit < n and not at & bit:
                bit <<= 1
            if at:
                self.recv((at - bit + root) % n, size)
            while bit > 1:
                bit >>= 1
                if at + bit < n:
                    self.send((at + bit + root) % n, size)
        elif op == "reduce":
            bit = 1
            while bit < n:
                if at & bit:
                    self.send((at - bit + root) % n, size)
                    break
                if at + bit < n:
                    self.recv((at + bit + root) % n, size)
                bit <<= 1
        elif op == "scan":
            if me:
                self.recv(me - 1, size)
            if me + 1 < n:
                self.send(me + 1, size)
        elif me != root:
            (self.send if op == "gather" else self.recv)(root, size)
        else:
            for other in range(n):
                if other != root:
                    (self.recv if op == "gather" else self.send)(other, size)
        return self.calls


# ---- the workload ---------------------------------------------------------------------------


def _is_collective(call: Call) -> bool:
    return call.op.removeprefix("i") in _WORLD_OPS


@dataclasses.dataclass
class _Message:
    """A send or receive of the program that is being made; `calls` are to vanish where nobody has
    the other side."""

    key: tuple[int, int, int]
    calls: list[Call]


def _computing(rank: Rank, begin: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Changes of the number of computing ranks by this one: rows of time and +1 or -1. A rank
    computes while not all of its threads are in MPI, from its first call to its last."""
    if not len(begin):
        return np.empty((0, 2))
    threads = len(np.unique(rank.threads))
    times = np.concatenate([begin, end])
    steps = np.repeat([1, -1], len(begin))
    order = np.lexsort((steps, times))
    times, inside = times[order], np.cumsum(steps[order])
    busy = inside < threads
    busy[-1] = False
    changes = np.diff(np.concatenate([[False], busy]).astype(int))
    return np.column_stack([times, changes])[changes != 0]


class _Machine:
    """What its cores did for a rank until a time, in seconds of a core: where more ranks than cores
    computed at the same time, each had its part of them."""

    def __init__(self, changes: list[np.ndarray], n_cores: int) -> None:
        rows = np.concatenate(changes)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        busy = np.cumsum(rows[:, 1])[:-1]
        speed = np.minimum(1.0, n_cores / np.maximum(busy, 1.0))
        self.times = rows[:, 0]
        self.work = np.concatenate([[0.0], np.cumsum(np.diff(self.times) * speed)])

    def between(self, begin: float, end: float) -> float:
        if not len(self.times):
            return end - begin
        a, b = np.interp([begin, end], self.times, self.work)
        # beyond the first and the last change nobody shares
        outside = max(self.times[0] - begin, 0.0) + max(end - self.times[-1], 0.0)
        return float(b - a + outside)


class _Program:
    """Makes the calls of one rank. `machine`: whose cores its ranks share, if there are fewer."""

    def __init__(
        self,
        maker: _Maker,
        rank: Rank,
        begin: np.ndarray,
        end: np.ndarray,
        machine: _Machine | None,
    ) -> None:
        self.maker, self.rank, self.begin, self.end = maker, rank, begin, end
        self.machine = machine
        self.me = rank.rank
        self.records = rank.records
        self.kinds = [kind_of(name) for name in rank.calls]
        self.calls: list[Call] = []
        self.sends: list[_Message] = []
        self.receives: list[_Message] = []
        self.requests: dict[int, list[Call]] = {}  # what completes each
        self.number = iter(range(1, 1 << 62))
        self.collectives: Counter[Any] = Counter()
        self.ends = self._ends()
        self.several = len(np.unique(rank.threads)) > 1

    def _ends(self) -> dict[int, Any]:
        """For each request the record that completes it."""
        found = {}
        for i in np.flatnonzero(self.records["request"]):
            record = self.records[i]
            if self.kinds[record["call"]].base in (*ENDS, "completion"):
                found[int(record["request"])] = record
        return found

    def cut(self, end: int) -> None:
        """Leaves the first `end` calls."""
        kept = {id(call) for call in self.calls[:end]}
        self.calls = self.calls[:end]
        for messages in (self.sends, self.receives):
            messages[:] = [m for m in messages if id(m.calls[0]) in kept]

    # Everything by time: at an end, what began there and still waits; at a begin, the call.
    def make(self) -> None:
        records = self.records
        n = len(records)
        polled = np.zeros(n)
        for name in ("Test", "Testall", "Testany", "Testsome", "Iprobe", "Improbe"):
            number = self.maker.numbers.get("MPI_" + name)
            if number is not None:
                polled = np.where(records["call"] == number, records["sent"] * 1e-9, polled)
        times = np.concatenate([self.begin, self.end])
        which = np.concatenate([np.arange(n)] * 2)
        is_end = np.repeat([False, True], n)
        order = np.lexsort((is_end, which, times))
        threads = max(len(np.unique(self.rank.threads)), 1)
        inside, since, later = 0, 0.0, {}
        for event in order:
            i = int(which[event])
            now = float(times[event])
            if inside < threads and now > since:
                self._compute(since, now, 0.0 if is_end[event] else float(polled[i]))
            since = now
            if is_end[event]:
                inside -= 1
                self.calls += later.pop(i, [])
            else:
                inside += 1
                waits = self._call(i)
                if waits:
                    later[i] = waits

    def _compute(self, begin: float, end: float, polled: float) -> None:
        """From `begin` to `end`, but for `polled` seconds in calls that found nothing."""
        seconds = end - begin
        if self.machine:
            seconds = self.machine.between(begin, end)
        seconds *= 1 - polled / (end - begin)
        if seconds > 0:
            self.calls.append(Call("compute", seconds=seconds))

    def _call(self, i: int) -> list[Call]:
        """Appends what the record does at its begin; returns what it waits for."""
        record = self.records[i]
        kind = self.kinds[record["call"]]
        flags, left = int(record["flags"]), self.maker.left.counts
        if flags & trace_reader.FAILED or (kind.persistent and not flags & trace_reader.STARTED):
            return []
        if kind.base in ENDS or kind.base == "completion":
            self.calls += self.requests.pop(int(record["request"]), [])
            return []
        if kind.base in _SILENT or kind.base == "tracer":
            return []
        comm = self.rank.comms.get(int(record["comm"]))
        if comm is None:
            left[f"{kind.base} on no communicator"] += kind.base != "tracer"
            return []
        if flags & trace_reader.RECEIVE_HALF or kind.base in RECEIVES:
            return self._receive(record, kind, comm)
        if kind.base in SENDS:
            return self._send(record, kind, comm)
        if kind.base not in _WORLD or comm.remote:
            left[kind.base + (" between groups" if comm.remote else "")] += 1
            return []
        return self._collective(record, kind, comm)

    def _peer(self, comm: Communicator, peer: int) -> int:
        return comm.peers[peer] if 0 <= peer < len(comm.peers) else -1

    def _started(self, record: Any, kind: CallKind, call: Call, wait: Call) -> list[Call]:
        """A blocking call of one thread, or one whose end something else says."""
        self.calls.append(call)
        if not kind.blocking:
            self.requests.setdefault(int(record["request"]), []).append(wait)
            return []
        return [wait]

    def _send(self, record: Any, kind: CallKind, comm: Communicator) -> list[Call]:
        peer = self._peer(comm, int(record["peer"]))
        if peer < 0:
            return []
        size, tag = int(record["sent"]), self.maker.tag(comm, int(record["tag"]))
        key = (self.me, peer, tag)
        eager = size <= self.maker.eager and "ssend" not in kind.base.lower()
        simple = kind.blocking and not self.several and kind.base not in _EXCHANGES
        if simple and not eager and kind.base not in _BUFFERED:
            call = Call("send", size, peer=peer, tag=tag)
            self.calls.append(call)
            self.sends.append(_Message(key, [call]))
            return []
        number = next(self.number)
        call = Call("isend", size, peer=peer, tag=tag, request=number)
        if eager or kind.base in _BUFFERED:  # nobody waits for it
            self.calls.append(call)
            self.sends.append(_Message(key, [call]))
            return []
        wait = Call("complete", request=number)
        self.sends.append(_Message(key, [call, wait]))
        return self._started(record, kind, call, wait)

    def _receive(self, record: Any, kind: CallKind, comm: Communicator) -> list[Call]:
        said = record
        if int(record["peer"]) == trace_reader.PROC_NULL:
            return []
        if not kind.blocking:
            said = self.ends.get(int(record["request"]))
            if said is None:
                self.maker.left.counts["receives that nothing completes"] += 1
                return []
        if int(said["flags"]) & trace_reader.CANCELLED:
            return []
        peer = self._peer(comm, int(said["peer"]))
        if peer < 0:
            return []
        size, tag = int(said["received"]), self.maker.tag(comm, int(said["tag"]))
        key = (peer, self.me, tag)
        if kind.blocking and not self.several and kind.base not in _EXCHANGES:
            call = Call("recv", size, peer=peer, tag=tag)
            self.calls.append(call)
            self.receives.append(_Message(key, [call]))
            return []
        number = next(self.number)
        call = Call("irecv", size, peer=peer, tag=tag, request=number)
        wait = Call("complete", request=number)
        self.receives.append(_Message(key, [call, wait]))
        return self._started(record, kind, call, wait)

    def _collective(self, record: Any, kind: CallKind, comm: Communicator) -> list[Call]:
        op, n = _WORLD[kind.base], len(comm.members)
        size = max(int(record["sent"]), int(record["received"]))
        if op == "allgather":
            size = int(record["received"]) / n
        elif op == "alltoall":  # some may only receive
            size = int(record["sent"]) / n
        elif op == "scatter":  # the root, which alone sends, may keep less than it hands out
            size = int(record["sent"]) / n or int(record["received"])
        elif op in ("gather", "reduce", "allreduce", "reducescatter"):
            size = int(record["sent"])
        root = max(int(record["peer"]), 0)
        self.collectives[comm.key] += 1
        if n == 1:
            return []
        if n == self.maker.n_ranks and op != "scan":
            peer = comm.members[root]
            if kind.blocking:
                self.calls.append(Call(op, size, peer=peer))
                return []
            number = next(self.number)
            call = Call("i" + op, size, peer=peer, request=number)
            return self._started(record, kind, call, Call("complete", request=number))
        tag = self.maker.collective_tag(comm, self.collectives[comm.key])
        part = _Members(comm.members, comm.rank, tag, self.number)
        made = part.run(op, size, root)
        if kind.blocking:
            self.calls += made
        else:  # where it is waited for: no overlap
            self.requests.setdefault(int(record["request"]), []).extend(made)
        return []


class _Maker:
    """What the programs share."""

    def __init__(self, job: Job, eager: float) -> None:
        self.job, self.eager, self.n_ranks = job, eager, job.n_ranks
        self.left = Left()
        self.tags: dict[Any, int] = {}
        self.numbers = {name: i for i, name in enumerate(job.ranks[0].calls)}

    def tag(self, comm: Communicator, tag: int) -> int:
        return self.tags.setdefault((comm.key, tag), len(self.tags))

    def collective_tag(self, comm: Communicator, number: int) -> int:
        return self.tags.setdefault((comm.key, "collective", number), len(self.tags))

    def make(self) -> list[list[Call]]:
        programs = []
        machines = self._machines()
        for rank, begin, end in zip(self.job.ranks, self.job.begin, self.job.end, strict=True):
            program = _Program(self, rank, begin, end, machines.get(rank.meta["machine"]))
            program.make()
            programs.append(program)
        if not all(rank.whole for rank in self.job.ranks):
            self._cut(programs)
        gone = self._unmatched(programs)
        return [[call for call in program.calls if id(call) not in gone] for program in programs]

    def _machines(self) -> dict[str, _Machine]:
        """Those with more ranks than cores."""
        ranks: dict[str, list[Rank]] = defaultdict(list)
        for rank in self.job.ranks:
            ranks[rank.meta["machine"]].append(rank)
        found = {}
        for name, here in ranks.items():
            cores = set().union(*(trace_reader.cores_of(rank) for rank in here))
            if name and 0 < len(cores) < len(here):
                changes = [_computing(rank, self.job.begin[rank.rank], self.job.end[rank.rank])
                           for rank in here]  # fmt: skip
                found[name] = _Machine(changes, len(cores))
        return found

    def _cut(self, programs: list[_Program]) -> None:
        """Of ranks that were killed not all have written as much: all end before the first
        collective of all ranks that one of them has not."""
        n = min(sum(_is_collective(call) for call in program.calls) for program in programs)
        for program in programs:
            places = [i for i, call in enumerate(program.calls) if _is_collective(call)]
            if len(places) > n:
                self.left.counts["calls after the end of a killed rank's trace"] += (
                    len(program.calls) - places[n]
                )
                program.cut(places[n])

    def _unmatched(self, programs: list[_Program]) -> set[int]:
        """Calls of messages that have one side only: the last ones of their kind."""
        sides: list[dict[Any, list[_Message]]] = [defaultdict(list), defaultdict(list)]
        for program in programs:
            for side, messages in zip(sides, (program.sends, program.receives), strict=True):
                for message in messages:
                    side[message.key].append(message)
        gone: set[int] = set()
        for key in {*sides[0], *sides[1]}:
            sent, received = sides[0].get(key, []), sides[1].get(key, [])
            for many, few, what in (
                (sent, received, "sends that nobody received"),
                (received, sent, "receives that nobody sent to"),
            ):
                for message in many[len(few) :]:
                    self.left.counts[what] += 1
                    gone |= {id(call) for call in message.calls}
        return gone


def workload(job: Job, eager: float = EAGER) -> tuple[Workload, Left]:
    """The job for the simulator. Sends of up to `eager` bytes do not wait for their receives.

    Collectives of all ranks stay collectives; those of some are the messages that replay.py would
    send. Raises ParameterError where ranks' collectives do not fit together.
    """
    maker = _Maker(job, eager)
    programs = maker.make()
    name = str(job.ranks[0].path.parent)
    made = Workload(name, job.n_ranks, programs)
    made.check()
    return made, maker.left


# ---- numbers --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Profile:
    """What a job did in all, as `plan` wants it. Bytes and seconds of the mean rank."""

    workers: int
    size: float
    messages: float
    scheme: str
    compute: float
    seconds: float
    others: dict[str, float]  # bytes that other collectives hand on, by kind
    left: Left  # what no simulation has either


def profile(job: Job) -> Profile:
    """Allreduces where they move most of the bytes, else what ranks send one another."""
    made, left = workload(job)
    n = job.n_ranks
    others: Counter[str] = Counter()
    for call in itertools.chain(*made.programs):
        if (kind := call.op.removeprefix("i")) in _HANDED_ON:
            others[kind] += call.size * (n - 1 if _HANDED_ON[kind] else 1) / n
    sums = [(call.size, p) for p in made.programs for call in p
            if call.op in ("allreduce", "iallreduce")]  # fmt: skip
    sent = [call.size for p in made.programs for call in p if call.op in ("send", "isend")]
    compute = sum(call.seconds for p in made.programs for call in p if call.op == "compute") / n
    reduced = sum(size for size, _ in sums) / n
    scheme, size, messages = "p2p", sum(sent) / n, len(sent) / n
    if reduced >= size:
        scheme, size, messages = "ring", reduced, len(sums) / n
    found = dict(others.most_common())
    return Profile(n, size, messages, scheme, compute, job.seconds, found, left)


# Collectives beside Allreduce, and whether a rank hands on its size to each of the others.
_HANDED_ON = {"bcast": False, "reduce": False, "gather": False, "scatter": False,
              "reducescatter": False, "allgather": True, "alltoall": True}  # fmt: skip
