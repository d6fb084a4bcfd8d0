# SPDX-License-Identifier: Apache-2.0
"""A trace of an MPI job (`wirepress trace`, spec/trace.md): when each rank was in which call.

Time in a call that needs all members (Allreduce, Barrier, ...) until the last of them came is
waiting for others; what comes then is the exchange itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from wirepress import api, units
from wirepress.report import figures, parts
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words

WHAT = "a trace: a folder, or the .wpt files, of wirepress trace"
ORDER = 5
EXPECTED = object

_RECEIVE_HALF, _STARTED = 1, 2  # flags of a record (spec/trace.md)
_SENDS = re.compile(r"MPI_I?[bsr]?send", re.IGNORECASE)
_SPANS = 20_000  # of a figure
_STEPS = 4000  # what is closer than a part in so many cannot be told apart on a screen
_MOST_RANKS = 64
_MOST_SAMPLES = 48  # that are compressed
_SMALL = 64 << 10  # bytes below which messages are not compressed, unless asked
_ALL_WAIT = ("Allreduce", "Allgather", "Alltoall", "Barrier", "Reduce_scatter")
_ROOTED = ("Bcast", "Reduce", "Gather", "Scatter", "Scan", "Exscan", "Neighbor")
_POINTS = ("Send", "Ssend", "Rsend", "Bsend", "Recv", "Mrecv", "Sendrecv")
_COMPUTE, _POINT, _COLLECTIVE, _LATE, _WAIT, _REST = (
    "computing", "point to point", "collectives", "collectives, for the last to come",
    "in Wait, Test and Probe", "other calls",
)  # fmt: skip
_COLOURS = {
    _COMPUTE: figures.COMPUTE, _POINT: figures.CODEC, _COLLECTIVE: figures.WIRE,
    _LATE: figures.WAIT, _WAIT: "#8f76cf", _REST: figures.GREY,
}  # fmt: skip


def matches(value: Any) -> bool:
    return not isinstance(value, (dict, list, str, int, float, type(None)))


def _kind(call: str) -> str:
    name = call.removeprefix("MPI_")
    if name.startswith(("Wait", "Test", "Probe", "Iprobe", "Mprobe", "Improbe")):
        return _WAIT
    if name in ("Sendrecv_replace", *_POINTS):
        return _POINT
    if name.startswith((*_ALL_WAIT, *_ROOTED)) and not name.endswith("_init"):
        return _COLLECTIVE
    return _REST


class _Calls:
    """The calls of a rank's busiest thread, in the order of their begin, without what is no call of
    its own: halves of exchanges, and the completions that follow Waitall."""

    def __init__(self, job: Any, place: int) -> None:
        import numpy as np

        rank = job.ranks[place]
        self.rank, records = rank, rank.records
        self.name = f"rank {rank.rank}"
        threads = np.bincount(rank.threads) if len(records) else np.zeros(1)
        own = np.array([name not in ("completion", "tracer") for name in rank.calls])
        keep = own[records["call"]] & (rank.threads == threads.argmax())
        keep &= (records["flags"] & _RECEIVE_HALF) == 0
        self.records = records[keep]
        self.begin, self.end = job.begin[place][keep], job.end[place][keep]
        self.calls = [rank.calls[number] for number in self.records["call"]]
        self.kinds = [_kind(call) for call in self.calls]
        self.late = np.zeros(len(self.records))  # seconds until the last member came

    def sends(self, i: int) -> bool:
        """Whether bytes leave by this call: tests have none, and what only makes a persistent
        request will send later."""
        made = self.calls[i].endswith("_init") and not self.records["flags"][i] & _STARTED
        return bool(self.records["sent"][i]) and self.kinds[i] != _WAIT and not made

    def spent(self, seconds: float) -> dict[str, float]:
        found = dict.fromkeys(_COLOURS, 0.0)
        for kind, begin, end, late in zip(self.kinds, self.begin, self.end, self.late, strict=True):
            found[kind] += end - begin - late
            found[_LATE] += late
        found[_COMPUTE] = max(0.0, seconds - sum(found.values()))
        return {kind: float(value) for kind, value in found.items()}

    def spans(self, least: float) -> list[figures.Span]:
        """For a figure that cannot show less than `least` seconds: like neighbours are joined."""
        found: list[figures.Span] = []

        def add(kind: str, begin: float, end: float) -> None:
            if found and found[-1][0] == kind and begin - found[-1][2] < least:
                found[-1] = kind, found[-1][1], end
            elif end > begin:
                found.append((kind, begin, end))

        at = 0.0
        for kind, begin, end, late in zip(self.kinds, self.begin, self.end, self.late, strict=True):
            if begin - at >= least:
                add(_COMPUTE, at, float(begin))
            if late > 0:
                add(_LATE, float(begin), float(begin + late))
            add(kind, float(begin + late), float(end))
            at = max(at, float(end))
        return found


def _find_late(all_calls: Sequence[_Calls]) -> None:
    """Fills `late`, communicator by communicator; where members do not agree on what they called
    (a rank ended early) nothing is known."""
    groups: dict[Any, dict[int, list[tuple[_Calls, int]]]] = defaultdict(lambda: defaultdict(list))
    for calls in all_calls:
        for i, kind in enumerate(calls.kinds):
            comm = calls.rank.comms.get(int(calls.records["comm"][i]))
            if comm is not None and not comm.remote and kind == _COLLECTIVE:
                groups[comm.key][calls.rank.rank].append((calls, i))
    for key, members in groups.items():
        if len(members) != len(key[0]):
            continue
        for together in zip(*members.values(), strict=False):
            names = {calls.calls[i].removeprefix("MPI_") for calls, i in together}
            if len(names) != 1:
                break
            if not names.pop().startswith(_ALL_WAIT):
                continue
            last = max(calls.begin[i] for calls, i in together)
            for calls, i in together:
                calls.late[i] = min(max(0.0, last - calls.begin[i]), calls.end[i] - calls.begin[i])


# ---- sentences ------------------------------------------------------------------------------


def _lost(all_calls: Sequence[_Calls], spent: list[dict[str, float]], job: Any) -> Iterator[str]:
    n, seconds = len(spent), job.seconds
    mean = {kind: sum(s[kind] for s in spent) / n for kind in _COLOURS}
    inside = seconds - mean[_COMPUTE]
    if not seconds:
        return
    yield (
        f"Of {units.seconds(seconds)} a mean rank was in MPI for {units.seconds(inside)} "
        f"({parts.share(inside / seconds)}): "
        + parts.listed(
            [f"{units.seconds(t)} {kind}" for kind, t in sorted(mean.items(), key=lambda p: -p[1])
             if kind != _COMPUTE and t > 0.001 * seconds] or ["next to nothing"]
        ) + "."
    )  # fmt: skip
    computing = sorted((s[_COMPUTE], c.rank.rank) for s, c in zip(spent, all_calls, strict=True))
    (least, first), (most, last) = computing[0], computing[-1]
    if n > 1 and most - least > 0.05 * seconds:
        yield (
            f"Rank {last} computes {units.seconds(most)}, rank {first} {units.seconds(least)}: the "
            f"others wait for rank {last}, and no codec gives that back."
        )
    if mean[_LATE] > 0.02 * seconds:
        yield (
            f"{units.seconds(mean[_LATE])} a rank ({parts.share(mean[_LATE] / seconds)}) went by "
            "in collectives until the last rank came."
        )


def _changes(
    spent: list[dict[str, float]], sizes: dict[int, list[float]], job: Any
) -> Iterator[str]:
    n, seconds = len(spent), job.seconds
    sent = sum(size for _, size in sizes.values())
    moving = sum(s[k] for s in spent for k in (_POINT, _COLLECTIVE, _WAIT)) / n
    if seconds and sent:
        yield (
            f"Exchange takes {parts.share(moving / seconds)} of the time: halving the bytes saves "
            f"at most {units.seconds(moving / 2)}. `wirepress simulate` and `plan` take this trace "
            "and say which codec does on which link."
        )
        small = sum(size for least, (_, size) in sizes.items() if least < _SMALL)
        few = sum(count for least, (count, _) in sizes.items() if least < _SMALL)
        count = sum(count for count, _ in sizes.values())
        yield (
            f"Messages below 64 KiB are {parts.share(few / count)} of the messages and "
            f"{parts.share(small / sent)} of the bytes; they go raw unless --threshold says so."
        )
    elif seconds:
        yield "No bytes were sent: there is nothing to compress."


# ---- tables and plots -----------------------------------------------------------------------


def _sizes(all_calls: Sequence[_Calls]) -> dict[int, list[float]]:
    """Calls and bytes sent, by the power of two at or below the size."""
    found: dict[int, list[float]] = {}
    for calls in all_calls:
        for i, sent in enumerate(map(int, calls.records["sent"])):
            if calls.sends(i):
                known = found.setdefault(1 << (sent.bit_length() - 1), [0, 0.0])
                known[0] += 1
                known[1] += sent
    return dict(sorted(found.items()))


def _size_plot(sizes: dict[int, list[float]]) -> Iterator[Plot]:
    if sizes:
        names = [f"from {units.size(size)}" for size in sizes]
        views = {
            "bytes": figures.grouped(names, {"sent": [s for _, s in sizes.values()]}, "bytes sent"),
            "calls": figures.grouped(names, {"sent": [c for c, _ in sizes.values()]}, "calls"),
        }
        yield Plot("By size", views, "show")


def _peers(all_calls: Sequence[_Calls]) -> Iterator[Plot]:
    sums: dict[tuple[str, str], float] = {}
    for calls in all_calls:
        for i, name in enumerate(calls.calls):
            comm = calls.rank.comms.get(int(calls.records["comm"][i]))
            peer = int(calls.records["peer"][i])
            if comm is None or not 0 <= peer < len(comm.peers):
                continue
            if calls.sends(i) and _SENDS.match(name):
                pair = str(calls.rank.rank), str(comm.peers[peer])
                sums[pair] = sums.get(pair, 0.0) + int(calls.records["sent"][i])
    if sums:
        ranks = sorted({rank for pair in sums for rank in pair}, key=int)
        cells = {pair: (size, units.size(size)) for pair, size in sums.items()}
        figure = figures.heat(ranks, ranks, cells, "from rank", "to rank")
        yield Plot("Sent from point to point", {"": figure})


def _by_call(job: Any) -> Iterator[parts.Part]:
    from wirepress.sim import trace_export

    rows = trace_export.by_call(job)
    shown = rows[:24]
    figure = figures.grouped(
        [row["call"] for row in shown], {"seconds": [row["seconds"] for row in shown]},
        "seconds of a mean rank", unit="s",
    )  # fmt: skip
    yield Plot("By call", {"": figure})
    yield parts.from_rows(
        "Calls, all ranks together", rows,
        [("call", "call", None), ("count", "calls", ""), ("sent", "sent", "bytes"),
         ("received", "received", "bytes"), ("seconds", "a mean rank", "seconds")],
    )  # fmt: skip


def _ratios(job: Any) -> Iterator[parts.Part]:
    """What `auto` makes of the samples, where the trace has some."""
    found = [(rank, s) for rank in job.ranks for s in rank.samples]
    step = max(1, -(-len(found) // _MOST_SAMPLES))
    rows = []
    for rank, sample in found[::step]:
        dtype = rank.meta["dtypes"][sample.dtype]
        frame = api.compress(sample.data, "auto", dtype=dtype)
        rows.append([rank.calls[sample.call], dtype, sample.message_size, len(sample.data),
                     len(frame), parts.quotient(len(sample.data), len(frame)),
                     api.inspect(frame).recipe])  # fmt: skip
    if not rows:
        return
    series: dict[str, list[tuple[float, float, str]]] = {}
    for call, dtype, size, _, _, ratio, _ in rows:
        text = f"{call}, {dtype}, {units.size(size)}: {parts.times(ratio)}"
        series.setdefault(f"{call}, {dtype}", []).append((size, ratio, text))
    figure = figures.points(
        series, figures.axis("bytes of the message", log=True), figures.axis("ratio by auto")
    )
    columns = [Column("call"), Column("type"), Column("message", "bytes"),
               Column("sample", "bytes"), Column("coded", "bytes"), Column("ratio", "x"),
               Column("recipe")]  # fmt: skip
    yield Plot("How much samples of the data shrink", {"": figure})
    yield Table("Samples", columns, rows)


def _timeline(all_calls: Sequence[_Calls], job: Any) -> Plot:
    shown = all_calls[:_MOST_RANKS]
    least = job.seconds / _STEPS
    most = _SPANS // max(1, len(shown))
    spans = [(calls.name, calls.spans(least)) for calls in shown]
    cut = len(shown) < len(all_calls) or any(len(s) > most for _, s in spans)
    figure = figures.timeline([(name, s[:most]) for name, s in spans], _COLOURS, "seconds")
    note = (
        f"What is closer than {units.seconds(least)} is joined; `wirepress trace export` has all."
    )
    if cut:
        note += f" Shown are {len(shown)} ranks, and {most:,} spans of each."
    return Plot("When each rank did what", {"": figure}, note=note)


def _one(name: str, job: Any, several: bool) -> list[Section]:
    all_calls = [_Calls(job, place) for place in range(job.n_ranks)]
    _find_late(all_calls)
    spent = [calls.spent(job.seconds) for calls in all_calls]
    sizes = _sizes(all_calls)
    sent = sum(size for _, size in sizes.values())
    cards = Cards(
        [
            ("time", units.seconds(job.seconds)),
            ("ranks on nodes", f"{job.n_ranks} on {len(set(job.nodes))}"),
            ("calls", f"{sum(len(calls.calls) for calls in all_calls):,}"),
            ("handed to MPI", units.size(sent)),
            ("clocks agree to", units.seconds(job.clock_error)),
        ]
    )
    kinds = [kind for kind in _COLOURS if any(s[kind] for s in spent)]
    breakdown = figures.stacked(
        [calls.name for calls in all_calls], {k: [s[k] for s in spent] for k in kinds}, "seconds",
        _COLOURS,
    )  # fmt: skip
    ended = [calls.name for calls in all_calls if not calls.rank.whole]
    content: list[parts.Part] = [cards]
    if ended:
        content.append(Words("What went wrong", [f"Ended early: {parts.listed(ended)}."], "lost"))
    content += [
        Words("Where time was lost", list(_lost(all_calls, spent, job)), "lost"),
        Words("What to change", list(_changes(spent, sizes, job)), "change"),
        Plot("Where each rank's time went", {"": breakdown}), _timeline(all_calls, job),
    ]  # fmt: skip
    command = job.ranks[0].meta.get("command") or ""
    about = " ".join(command) if isinstance(command, list) else str(command)
    title = f"Trace: {name}" if several else "The trace"
    return [
        Section(title, content, about[:300]),
        Section(f"Calls and sizes{': ' + name if several else ''}",
                [*_by_call(job), *_size_plot(sizes), *_peers(all_calls), *_ratios(job)]),
    ]  # fmt: skip


def _compared(inputs: Sequence[Input]) -> Section:
    columns = [
        Column("trace"), Column("time", "seconds"), Column("speed-up", "x", "against the first"),
        Column("ranks", ""), Column("calls", ""),
    ]  # fmt: skip
    first = inputs[0].value.seconds
    rows = [
        [given.name, job.seconds, parts.quotient(first, job.seconds), job.n_ranks,
         sum(len(rank.records) for rank in job.ranks)]
        for given in inputs for job in [given.value]
    ]  # fmt: skip
    return Section("Traces side by side", [Table("Traces", columns, rows)])


def build(inputs: Sequence[Input]) -> list[Section]:
    several = len(inputs) > 1
    found = [_compared(inputs)] if several else []
    for given in inputs:
        found += _one(given.name, given.value, several)
    return found
