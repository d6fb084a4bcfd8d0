# SPDX-License-Identifier: Apache-2.0
"""A trace for readers: a table of its calls, CSV, and a timeline in Chrome's trace format."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np

from wirepress.sim.trace_calls import ENDS, RECEIVES, SENDS, kind_of
from wirepress.sim.trace_reader import OPS, RECEIVE_HALF, STARTED, Job, Rank


def by_call(job: Job) -> list[dict[str, Any]]:
    """A row for each call: how often, bytes, seconds of the mean rank; the longest first."""
    rows: dict[str, dict[str, Any]] = {}
    for rank, begin, end in zip(job.ranks, job.begin, job.end, strict=True):
        records = rank.records
        tests = np.array(["Test" in name or "probe" in name for name in rank.calls])
        for number in np.unique(records["call"]):
            name = rank.calls[number]
            mine = records["call"] == number
            once = mine & (records["flags"] & RECEIVE_HALF == 0)
            row = rows.setdefault(
                name, {"call": name, "count": 0, "sent": 0, "received": 0, "seconds": 0.0}
            )
            row["count"] += int(once.sum())
            row["sent"] += 0 if tests[number] else int(records["sent"][mine].sum())
            row["received"] += int(records["received"][mine].sum())
            row["seconds"] += float((end - begin)[once].sum()) / job.n_ranks
    return sorted(rows.values(), key=lambda row: -row["seconds"])


# ---- other formats --------------------------------------------------------------------------


def _records(job: Job) -> Iterator[tuple[Rank, int, Any, float, float]]:
    for rank, begin, end in zip(job.ranks, job.begin, job.end, strict=True):
        for i, record in enumerate(rank.records):
            yield rank, i, record, float(begin[i]), float(end[i])


def write_csv(job: Job, file: TextIO) -> None:
    """A row for each record; times in seconds since the job's first."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        "rank thread begin end call peer tag communicator count type sent received request "
        "operation flags".split()
    )
    for rank, i, r, begin, end in _records(job):
        comm = rank.comms.get(int(r["comm"]))
        peer = int(r["peer"])
        known = comm is not None and 0 <= peer < len(comm.peers)
        writer.writerow(
            [rank.rank, int(rank.threads[i]), f"{begin:.9f}", f"{end:.9f}", rank.calls[r["call"]],
             comm.peers[peer] if known and comm else peer, int(r["tag"]), int(r["comm"]),
             int(r["count"]), rank.meta["dtypes"][r["dtype"]], int(r["sent"]), int(r["received"]),
             int(r["request"]), OPS[r["op"]] if r["op"] < len(OPS) else "user",
             int(r["flags"])]
        )  # fmt: skip


def chrome_events(job: Job) -> Iterator[dict[str, Any]]:
    """Events of Chrome's trace format (also Perfetto's): a process for each rank, a track for each
    thread; requests as asynchronous slices; arrows from sends to receives."""
    for rank in job.ranks:
        for name, value in (
            ("process_name", {"name": f"rank {rank.rank} on {rank.meta['host']}"}),
            ("process_sort_index", {"sort_index": rank.rank}),
        ):
            yield {"name": name, "ph": "M", "pid": rank.rank, "tid": 0, "args": value}
    ends: dict[tuple[int, int], Any] = {}
    for rank, i, r, _, end in _records(job):
        name = rank.calls[r["call"]].removeprefix("MPI_")
        if int(r["request"]) and (name in ENDS or name == "completion"):
            ends[rank.rank, int(r["request"])] = (r, end, int(rank.threads[i]))
    arrows: dict[Any, list[tuple[float, int, int]]] = defaultdict(list)
    heads: dict[Any, list[tuple[float, int, int]]] = defaultdict(list)
    for rank, i, r, begin, end in _records(job):
        name, thread = rank.calls[r["call"]], int(rank.threads[i])
        where = {"pid": rank.rank, "tid": thread, "ts": begin * 1e6}
        if name == "completion":
            continue
        comm = rank.comms.get(int(r["comm"]))
        args = {key: int(r[key]) for key in ("sent", "received", "peer", "tag", "comm", "count")}
        args["type"] = rank.meta["dtypes"][r["dtype"]]
        category = "tracer" if name == "tracer" else "mpi"
        half = bool(r["flags"] & RECEIVE_HALF)
        if not half:
            yield {"name": name, "cat": category, "ph": "X", "dur": (end - begin) * 1e6,
                   "args": args, **where}  # fmt: skip
        kind = kind_of(name)
        starts = not kind.blocking and int(r["request"]) > 0 and not half
        done = ends.get((rank.rank, int(r["request"])))
        if starts and kind.base not in (*ENDS, "Request_free") and done and done[1] >= begin:
            number = f"{rank.rank}.{int(r['request'])}"
            yield {"name": name, "cat": "request", "ph": "b", "id": number, **where}
            yield {"name": name, "cat": "request", "ph": "e", "id": number, "pid": rank.rank,
                   "tid": thread, "ts": done[1] * 1e6}  # fmt: skip
        if comm is None or (kind.persistent and not r["flags"] & STARTED):
            continue
        said, there, track = r, (begin + end) / 2, thread
        if kind.base in SENDS and not half and 0 <= r["peer"] < len(comm.peers):
            key = (comm.key, rank.rank, comm.peers[r["peer"]], int(r["tag"]))
            arrows[key].append((there, rank.rank, thread))
        elif half or kind.base in RECEIVES:
            if not kind.blocking and done:
                said, there, track = done
            if 0 <= said["peer"] < len(comm.peers) and (kind.blocking or done):
                key = (comm.key, comm.peers[said["peer"]], rank.rank, int(said["tag"]))
                heads[key].append((there if not kind.blocking else end, rank.rank, track))
    number = 0
    for key, sent in arrows.items():
        for tail, head in zip(sent, heads.get(key, []), strict=False):
            number += 1
            for phase, (at, pid, tid), more in (("s", tail, {}), ("f", head, {"bp": "e"})):
                yield {"name": "message", "cat": "message", "ph": phase, "id": number, "pid": pid,
                       "tid": tid, "ts": at * 1e6, **more}  # fmt: skip


def write_chrome(job: Job, file: TextIO) -> None:
    """One JSON object, an event a line."""
    file.write('{"displayTimeUnit": "ns", "traceEvents": [')
    comma = "\n"
    for event in chrome_events(job):
        file.write(comma + json.dumps(event))
        comma = ",\n"
    file.write("\n]}\n")
