# SPDX-License-Identifier: Apache-2.0
"""An MPI job's report (spec/report.md): where its time went, what shrank, and what did not and why.

The report has sums, no time stamps. Its `wait_seconds` hold what the network took and what ranks
waited for each other; the two are told apart by an estimate: a rank's own bytes at the rate of its
link, as the rank measured it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from wirepress import units
from wirepress.launch.job_report import short_name
from wirepress.report import figures, parts
from wirepress.report.expect import ANY, NUMBER, Maybe
from wirepress.report.kinds import has
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words

WHAT = "a job's report (wirepress run --report FILE)"
ORDER = 10

_CALL = {
    "messages": int,
    "compressed_messages": int,
    "raw_bytes": NUMBER,
    "wire_bytes": NUMBER,
    "received_raw_bytes": Maybe(NUMBER),
    "received_wire_bytes": Maybe(NUMBER),
    "compress_seconds": NUMBER,
    "decompress_seconds": NUMBER,
    "wait_seconds": NUMBER,
    "bypasses": Maybe({str: int}),
}
_SITE = {
    "call": str,
    "type": str,
    "bytes_from": int,
    "node": Maybe(int),
    "messages": int,
    "compressed_messages": int,
    "raw_bytes": NUMBER,
    "wire_bytes": NUMBER,
    "choice": str,
    "why": str,
    "caller": Maybe(str),
    "function": Maybe(str),
}
_CONTEST = {
    "call": str,
    "type": str,
    "bytes_from": int,
    "ranks": int,
    "winner": str,
    "plain_seconds": NUMBER,
    "own_seconds": NUMBER,
}
EXPECTED = {
    "state": str,
    "reason": Maybe(str),
    "size": int,
    "nodes": [int],
    "seconds": Maybe(NUMBER),
    "exit_code": Maybe(int),
    "command": Maybe([str]),
    "mpi": Maybe(str),
    "started": Maybe(str),
    "totals": Maybe({"other_bytes": Maybe(NUMBER)}),
    "network": Maybe({"nic_payload_bytes": Maybe(NUMBER), "difference": Maybe(str)}),
    "ranks": [
        {
            "rank": int,
            "host": Maybe(str),
            "state": Maybe(str),
            "reason": Maybe(str),
            "options": Maybe({str: ANY}),
            "link_bytes_per_second": Maybe(NUMBER),
            "calls": {str: _CALL},
            "sites": Maybe([_SITE]),
            "contests": Maybe([_CONTEST]),
            "events": Maybe({str: int}),
        }
    ],
}

# reason of a bypass: what it means, and what to do about it
BYPASSES = {
    "small": ("below the threshold", "lower --threshold if they are many and the link is slow"),
    "same_host": ("the receiver is on the same node", ""),
    "noncontiguous": ("the data could not be packed", ""),
    "incompressible": ("codecs were tried and did not shrink it", "if floats may differ, --error"),
    "not_tried": ("no codec that was tried shrinks it, others were not tried yet", ""),
    "not_faster": ("raw is there sooner at the link's rate", "a faster codec, or an --error"),
    "learning": ("sent raw to see what that takes", ""),
    "not_smaller": ("compressed, and did not shrink enough", "if floats may differ, an --error"),
    "no_peer": ("the receiver is no rank of this job", ""),
    "unsupported": ("no memory or buffer, or a collective left to MPI", ""),
    "nonblocking": ("a non-blocking collective, left to MPI", "--nonblocking on compresses them"),
    "passive": ("this rank does not send compressed messages", "see the reason of that rank"),
    "no_codec": ("the codec does not take this element type", "another --codec, or auto"),
}
_EVENTS = {
    "truncated": "messages were larger than their buffer (MPI_ERR_TRUNCATE)",
    "corrupt": "frames could not be read (MPI_ERR_OTHER)",
    "no_memory": "times memory ran out",
    "orphans": "receives were freed before they completed",
}
_WORTH = 0.05  # share of the time from which a sentence is worth reading
_LINK = re.compile(r"\blink ([0-9.]+) ([GM])b/s")
_LOST, _COMPUTE, _COMPRESS, _EXPAND, _WIRE, _WAIT = (
    "lost", "computing, and the rest", "compressing", "expanding", "on the wire (estimate)",
    "waiting for others",
)  # fmt: skip
_COLOURS = {
    _COMPUTE: figures.COMPUTE, _COMPRESS: figures.CODEC, _EXPAND: figures.EXPAND,
    _WIRE: figures.WIRE, _WAIT: figures.WAIT,
}  # fmt: skip


def matches(value: Any) -> bool:
    return has(value, "ranks", "state", "nodes")


# ---- sums -----------------------------------------------------------------------------------


def _sum(rank: dict[str, Any], field: str) -> float:
    return sum(call.get(field) or 0 for call in rank["calls"].values())


def _sites(job: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for rank in job["ranks"]:
        for site in rank.get("sites") or []:
            yield rank, site


def _link(rank: dict[str, Any]) -> float:
    """Bytes a second, as the rank measured it; 0: nobody knows. A job of collectives alone leaves
    it in the sentences of its sites."""
    if rate := rank.get("link_bytes_per_second"):
        return float(rate)
    said = [_LINK.search(site["why"]) for site in rank.get("sites") or []]
    rates = [float(m[1]) * (1e9 if m[2] == "G" else 1e6) / 8 for m in said if m]
    return parts.median(rates) if rates else 0.0


def spent(job: dict[str, Any], rank: dict[str, Any]) -> dict[str, float]:
    """A rank's seconds by what they went into, those of _COLOURS."""
    compress, expand = _sum(rank, "compress_seconds"), _sum(rank, "decompress_seconds")
    wait, link = _sum(rank, "wait_seconds"), _link(rank)
    bytes_moved = max(_sum(rank, "wire_bytes"), _sum(rank, "received_wire_bytes"))
    wire = min(wait, bytes_moved / link) if link else 0.0
    rest = max(0.0, (job.get("seconds") or 0.0) - compress - expand - wait)
    return {
        _COMPUTE: rest, _COMPRESS: compress, _EXPAND: expand, _WIRE: wire, _WAIT: wait - wire,
    }  # fmt: skip


def _totals(job: dict[str, Any]) -> dict[str, Any]:
    fields = ("messages", "compressed_messages", "raw_bytes", "wire_bytes", "compress_seconds",
              "decompress_seconds", "wait_seconds")  # fmt: skip
    totals: dict[str, Any] = {f: sum(_sum(rank, f) for rank in job["ranks"]) for f in fields}
    # what ranks' connections carried besides the calls' bytes
    other = (job.get("totals") or {}).get("other_bytes") or 0
    totals["raw_bytes"] += other
    totals["wire_bytes"] += other
    totals["ratio"] = parts.quotient(totals["raw_bytes"], totals["wire_bytes"])
    return totals


def _by_call(job: dict[str, Any]) -> dict[str, dict[str, float]]:
    calls: dict[str, dict[str, float]] = {}
    for rank in job["ranks"]:
        for name, call in rank["calls"].items():
            known = calls.setdefault(name, {})
            for field, value in call.items():
                if parts.is_number(value) and field != "ratio":
                    known[field] = known.get(field, 0) + value
    return dict(sorted(calls.items(), key=lambda item: -item[1].get("raw_bytes", 0)))


def _bypasses(job: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for rank in job["ranks"]:
        for call in rank["calls"].values():
            for reason, count in (call.get("bypasses") or {}).items():
                found[reason] = found.get(reason, 0) + count
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _by_size(job: dict[str, Any]) -> dict[int, tuple[float, float]]:
    """Raw and wire bytes of the sites, by the least size of their messages."""
    sizes: dict[int, tuple[float, float]] = {}
    for _, site in _sites(job):
        raw, wire = sizes.get(site["bytes_from"], (0.0, 0.0))
        sizes[site["bytes_from"]] = raw + site["raw_bytes"], wire + site["wire_bytes"]
    return dict(sorted(sizes.items()))


def _by_peer(job: dict[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """Raw and wire bytes of the sites, by sending and receiving node."""
    nodes, peers = job["nodes"], {}
    for rank, site in _sites(job):
        node = nodes[rank["rank"]] if 0 <= rank["rank"] < len(nodes) else -1
        to = site.get("node")
        pair = str(node), "several" if to is None or to < 0 else str(to)
        raw, wire = peers.get(pair, (0.0, 0.0))
        peers[pair] = raw + site["raw_bytes"], wire + site["wire_bytes"]
    return peers


# ---- sentences ------------------------------------------------------------------------------


def _saved(job: dict[str, Any]) -> float | None:
    """Seconds that a mean rank's own messages were shorter on the wire; None: no link rate."""
    saved = [
        (_sum(rank, "raw_bytes") - _sum(rank, "wire_bytes")) / _link(rank)
        for rank in job["ranks"]
        if _link(rank)
    ]
    return sum(saved) / len(saved) if saved else None


def _where_lost(job: dict[str, Any]) -> Iterator[str]:
    ranks, seconds = job["ranks"], job.get("seconds") or 0.0
    n = len(ranks)
    total = _totals(job)
    wait = total["wait_seconds"] / n
    codec = (total["compress_seconds"] + total["decompress_seconds"]) / n
    if seconds:
        yield (
            f"Of {units.seconds(seconds)} a mean rank waited {units.seconds(wait)} in MPI "
            f"({parts.share(wait / seconds)}), spent {units.seconds(codec)} in codecs "
            f"({parts.share(codec / seconds)}), and the rest outside of both."
        )
    else:
        yield (
            f"A mean rank waited {units.seconds(wait)} in MPI, {units.seconds(codec)} in codecs."
        )
    by_call = {name: call.get("wait_seconds", 0) for name, call in _by_call(job).items()}
    worst = max(by_call, key=lambda name: by_call[name], default=None)
    if worst and total["wait_seconds"]:
        part = by_call[worst] / total["wait_seconds"]
        if len(by_call) > 1 and part > 0:
            yield f"{worst} has {parts.share(part)} of that waiting."
    yield from _uneven(job)
    if (saved := _saved(job)) is not None and total["raw_bytes"] > total["wire_bytes"]:
        yield (
            f"Codecs cost {units.seconds(codec)} a rank and kept about {units.seconds(saved)} of "
            "sending off the wire, at the rate of the link that ranks measured."
        )


def _uneven(job: dict[str, Any]) -> Iterator[str]:
    waits = sorted((_sum(rank, "wait_seconds"), rank["rank"]) for rank in job["ranks"])
    (least, first), (most, last) = waits[0], waits[-1]
    spread = most - least
    reference = job.get("seconds") or most
    if len(waits) > 1 and reference and spread > _WORTH * reference:
        yield (
            f"Ranks wait unevenly: rank {last} {units.seconds(most)}, rank {first} "
            f"{units.seconds(least)}. Rank {first} is waited for: it has more to do, or a slower "
            f"core; {units.seconds(spread)} lie there, and no codec gives them back."
        )


def _changes(job: dict[str, Any]) -> Iterator[str]:
    total, bypasses = _totals(job), _bypasses(job)
    if job["state"] != "on":
        yield (
            f"Nothing was compressed: {job.get('reason') or 'the report does not say why'}. Every "
            "rank must load the library (see wirepress run --help)."
        )
        return
    codec = total["compress_seconds"] + total["decompress_seconds"]
    saved = _saved(job)
    if saved is not None and total["compressed_messages"] and codec / len(job["ranks"]) > saved:
        yield (
            f"Codecs took longer ({units.seconds(codec / len(job['ranks']))} a rank) than the link "
            f"saved ({units.seconds(saved)}): a faster one, such as --codec bx:m=23 for floats or "
            "lz4, or none on this link."
        )
    elif total["compressed_messages"] and total["ratio"] < 1.1:
        yield (
            f"The data shrink {total['ratio']:.3f} times: hardly worth it. If floats may differ "
            "from what was sent, --error bits:20 (a bound of 2^-20) or less lets lossy codecs in; "
            "--verify shows what that does to the results."
        )
    # what stays on a host never meets the network, and learning ends by itself
    staying = {
        reason: count
        for reason, count in bypasses.items()
        if reason not in ("same_host", "learning")
    }
    considered = total["messages"] - sum(bypasses.get(r, 0) for r in ("same_host",))
    for reason, count in list(staying.items())[:3]:
        meaning, hint = BYPASSES.get(reason, ("no reason that this version knows", ""))
        if count >= _WORTH * max(1, considered):
            text = f"{count:,} of {considered:,} messages that leave a host went raw, “{reason}”: "
            yield text + meaning + (f"; {hint}." if hint else ".")
    yield from _lossy(job)


def _lossy(job: dict[str, Any]) -> Iterator[str]:
    """Floats that hardly shrink without loss."""
    raw = [
        site
        for _, site in _sites(job)
        if site["type"].startswith(("float", "bfloat"))
        and parts.quotient(site["raw_bytes"], site["wire_bytes"]) < 1.3
    ]
    total = sum(site["raw_bytes"] for _, site in _sites(job))
    weight = sum(site["raw_bytes"] for site in raw)
    if total and weight > 0.2 * total:
        yield (
            f"{units.size(weight)} of floats ({parts.share(weight / total)} of what the largest "
            "sites send) shrink less than 1.3 times without loss. If they may differ, --error "
            "bits:N or rel:E sends a few bits of each; iterative solvers and checks on "
            "conservation need more of them than others: --verify compares the results."
        )


def _trouble(job: dict[str, Any]) -> Iterator[str]:
    if job.get("exit_code"):
        yield f"The job ended with exit code {job['exit_code']}."
    if missing := job["size"] - len(job["ranks"]):
        yield f"{missing} of {job['size']} ranks did not report: they did not reach MPI_Finalize."
    for rank in job["ranks"]:
        if rank.get("state") not in (None, "on"):
            why = rank.get("reason") or "no reason given"
            yield f"Rank {rank['rank']} is {rank['state']}: {why}."
    if said := (job.get("network") or {}).get("difference"):
        yield said[0].upper() + said[1:] + "."
    for event, meaning in _EVENTS.items():
        count = sum((rank.get("events") or {}).get(event, 0) for rank in job["ranks"])
        if count:
            yield f"{count:,} {meaning}."


# ---- tables and plots -----------------------------------------------------------------------


def _cards(job: dict[str, Any]) -> Cards:
    total = _totals(job)
    n = max(1, len(job["ranks"]))
    pairs = [
        ("time", units.seconds(job["seconds"]) if job.get("seconds") else "not known"),
        ("ranks on nodes", f"{job['size']} on {len(set(job['nodes']))}"),
        ("bytes that shrank", f"{total['ratio']:.2f}x"),
        ("before", units.size(total["raw_bytes"])),
        ("on the wire", units.size(total["wire_bytes"])),
        ("messages", f"{total['messages']:,}"),
        ("compressed", f"{total['compressed_messages']:,}"),
        ("waiting, a rank", units.seconds(total["wait_seconds"] / n)),
    ]
    if (sent := (job.get("network") or {}).get("nic_payload_bytes")) is not None:
        pairs.insert(5, ("sent by NICs, without headers", units.size(sent)))
    return Cards(pairs)


def _breakdown(job: dict[str, Any]) -> Plot:
    ranks = job["ranks"]
    all_spent = [spent(job, rank) for rank in ranks]
    names = [f"rank {rank['rank']}" for rank in ranks]
    kinds = [k for k in _COLOURS if any(s[k] for s in all_spent)] or [_WAIT]
    note = (
        "On the wire: a rank's own bytes at the rate of the link that it measured, at most what it "
        "waited. Computing, and the rest: what is left of the job's time, with its start."
        if job.get("seconds")
        else "The report has no time of the whole job, so computing is not known."
    )
    figure = figures.stacked(
        names, {k: [s[k] for s in all_spent] for k in kinds}, "seconds", _COLOURS
    )
    return Plot("Where each rank's time went", {"": figure}, note=note)


def _ratio_plot(title: str, found: dict[str, dict[str, tuple[float, float]]], x: str) -> Plot:
    """Bars of raw by wire; `found`: by name of the job, by name of the bar."""
    names = parts.unique(name for by in found.values() for name in by)
    groups = {
        job: [parts.quotient(*by[name]) if name in by else None for name in names]
        for job, by in found.items()
    }
    return Plot(title, {"": figures.grouped(names, groups, x)})


def _calls(jobs: dict[str, dict[str, Any]]) -> Iterator[parts.Part]:
    found = {name: _by_call(job) for name, job in jobs.items()}
    sending = {
        name: {c: (v["raw_bytes"], v["wire_bytes"]) for c, v in calls.items() if v["raw_bytes"]}
        for name, calls in found.items()
    }
    if any(sending.values()):
        yield _ratio_plot("How much each call shrank", sending, "ratio (raw / wire)")
    waits = parts.unique(
        c for calls in found.values() for c, v in calls.items() if v["wait_seconds"]
    )
    if waits:
        groups = {
            name: [calls.get(call, {}).get("wait_seconds", 0) for call in waits]
            for name, calls in found.items()
        }
        figure = figures.grouped(waits, groups, "seconds waited, all ranks together", unit="s")
        yield Plot("What ranks waited in", {"": figure})
    columns = [
        Column("job"), Column("call"), Column("messages", ""), Column("compressed", ""),
        Column("raw", "bytes"), Column("on the wire", "bytes"), Column("ratio", "x"),
        Column("compressing", "seconds"), Column("expanding", "seconds"),
        Column("waiting", "seconds"),
    ]  # fmt: skip
    rows = [
        [name, call, int(v["messages"]), int(v["compressed_messages"]), v["raw_bytes"],
         v["wire_bytes"], parts.quotient(v["raw_bytes"], v["wire_bytes"]), v["compress_seconds"],
         v["decompress_seconds"], v["wait_seconds"]]
        for name, calls in found.items() for call, v in calls.items()
    ]  # fmt: skip
    yield _of_jobs("Calls, all ranks together", columns, rows, jobs)


def _of_jobs(
    title: str, columns: list[Column], rows: list[list[Any]], jobs: dict[str, Any], note: str = ""
) -> Table:
    """A table whose first column names the job, if there are several."""
    if len(jobs) == 1:
        return Table(title, columns[1:], [row[1:] for row in rows], note)
    return Table(title, columns, rows, note)


def _sizes_and_peers(jobs: dict[str, dict[str, Any]]) -> Iterator[parts.Part]:
    sizes = {
        name: {f"from {units.size(size)}": pair for size, pair in _by_size(job).items()}
        for name, job in jobs.items()
    }
    order = sorted({size for job in jobs.values() for size in _by_size(job)})
    if order:
        labels = [f"from {units.size(size)}" for size in order]
        ratios = {
            name: [parts.quotient(*by[label]) if label in by else None for label in labels]
            for name, by in sizes.items()
        }
        amounts = {
            name: [by[label][0] if label in by else None for label in labels]
            for name, by in sizes.items()
        }
        views = {
            "ratio": figures.grouped(labels, ratios, "ratio (raw / wire)"),
            "bytes": figures.grouped(labels, amounts, "raw bytes", unit="B"),
        }
        yield Plot("By size of the messages", views, "show", "Of the sites below; a message "
                   "belongs to the power of two at or below its size.")  # fmt: skip
    for name, job in jobs.items():
        if peers := _by_peer(job):
            title = "By peer" if len(jobs) == 1 else f"By peer: {name}"
            yield _peer_plot(title, peers)


def _peer_plot(title: str, peers: dict[tuple[str, str], tuple[float, float]]) -> Plot:
    down = sorted({a for a, _ in peers}, key=int)
    across = sorted({b for _, b in peers if b != "several"}, key=int)
    across += ["several"] if any(b == "several" for _, b in peers) else []
    ratios = {pair: parts.quotient(*sums) for pair, sums in peers.items()}
    views = {
        "ratio": {pair: (ratio, parts.times(ratio)) for pair, ratio in ratios.items()},
        "bytes": {pair: (wire, units.size(wire)) for pair, (_, wire) in peers.items()},
    }
    return Plot(
        title,
        {n: figures.heat(down, across, v, "from node", "to node") for n, v in views.items()},
        "show",
        "Of the sites below; bytes are those on the wire. Collectives have several receivers.",
    )


def _bypass_parts(jobs: dict[str, dict[str, Any]]) -> Iterator[parts.Part]:
    found = {name: _bypasses(job) for name, job in jobs.items()}
    reasons = parts.unique(reason for by in found.values() for reason in by)
    if not reasons:
        return
    figure = figures.grouped(
        reasons, {n: [by.get(r, 0) for r in reasons] for n, by in found.items()}, "messages"
    )
    yield Plot("Why messages went raw", {"": figure})
    rows = [
        [name, reason, count, *BYPASSES.get(reason, ("", ""))]
        for name, by in found.items()
        for reason, count in by.items()
    ]
    columns = [Column("job"), Column("reason"), Column("messages", ""), Column("meaning"),
               Column("what to change")]  # fmt: skip
    yield _of_jobs("Reasons", columns, rows, jobs)


def _site_parts(jobs: dict[str, dict[str, Any]]) -> Iterator[parts.Part]:
    rows = [
        [name, rank["rank"], site["call"], site["type"], site["bytes_from"],
         "several" if (site.get("node") or 0) < 0 else str(site.get("node", "")),
         site["messages"], site["compressed_messages"], site["raw_bytes"], site["wire_bytes"],
         parts.quotient(site["raw_bytes"], site["wire_bytes"]), site["choice"],
         short_name(site.get("function") or "") or parts.file_name(site.get("caller") or ""),
         site["why"]]
        for name, job in jobs.items() for rank, site in _sites(job)
    ]  # fmt: skip
    if rows:
        columns = [
            Column("job"), Column("rank", ""), Column("call"), Column("type"),
            Column("from", "bytes", "least size of the messages"), Column("to node"),
            Column("messages", ""), Column("compressed", ""), Column("raw", "bytes"),
            Column("on the wire", "bytes"), Column("ratio", "x"), Column("sent as"),
            Column("caller"), Column("why"),
        ]  # fmt: skip
        yield _of_jobs("Sites: what the program's places sent, and why so", columns, rows, jobs)
    contests = [
        [name, c["call"], c["type"], c["bytes_from"], c["ranks"],
         "MPI's own" if c["winner"] == "plain" else "wirepress's", c["plain_seconds"],
         c["own_seconds"], parts.quotient(c["plain_seconds"], c["own_seconds"])]
        for name, job in jobs.items() for c in (job["ranks"][0].get("contests") or [])
    ]  # fmt: skip
    if contests:
        columns = [
            Column("job"), Column("call"), Column("type"), Column("from", "bytes"),
            Column("ranks", ""), Column("winner"), Column("MPI's own", "seconds"),
            Column("wirepress's", "seconds"), Column("gain", "x"),
        ]  # fmt: skip
        yield _of_jobs("Contests: whose algorithm ran collectives faster", columns, contests, jobs)


def _rank_table(jobs: dict[str, dict[str, Any]]) -> Table:
    columns = [
        Column("job"), Column("rank", ""), Column("host"), Column("node", ""),
        Column("messages", ""), Column("raw", "bytes"), Column("on the wire", "bytes"),
        Column("ratio", "x"), Column("compressing", "seconds"), Column("expanding", "seconds"),
        Column("waiting", "seconds"), Column("link", "link", "as the rank measured it"),
    ]  # fmt: skip
    rows = []
    for name, job in jobs.items():
        for rank in job["ranks"]:
            raw, wire = _sum(rank, "raw_bytes"), _sum(rank, "wire_bytes")
            place = rank["rank"]
            node = job["nodes"][place] if 0 <= place < len(job["nodes"]) else None
            rows.append(
                [name, place, rank.get("host", ""), node, int(_sum(rank, "messages")), raw, wire,
                 parts.quotient(raw, wire), _sum(rank, "compress_seconds"),
                 _sum(rank, "decompress_seconds"), _sum(rank, "wait_seconds"), _link(rank) or None]
            )  # fmt: skip
    return _of_jobs("Ranks", columns, rows, jobs)


def _facts(jobs: dict[str, dict[str, Any]]) -> Iterator[parts.Part]:
    rows = []
    for name, job in jobs.items():
        facts = {
            "command": " ".join(job.get("command") or []),
            "MPI": job.get("mpi"),
            "started": job.get("started"),
            "exit code": job.get("exit_code"),
        }
        options = (job["ranks"][0].get("options") or {}) if job["ranks"] else {}
        facts |= options
        rows += [[name, key, str(v)] for key, v in facts.items() if v not in (None, "")]
    if rows:
        yield _of_jobs("Settings", [Column("job"), Column("what"), Column("value")], rows, jobs)


# ---- several jobs ---------------------------------------------------------------------------


def _compared(jobs: dict[str, dict[str, Any]]) -> Section:
    first = next(iter(jobs.values()))
    columns = [
        Column("job"), Column("time", "seconds"), Column("speed-up", "x", "against the first"),
        Column("raw", "bytes"), Column("on the wire", "bytes"), Column("ratio", "x"),
        Column("codecs, a rank", "seconds"), Column("waiting, a rank", "seconds"),
        Column("messages", ""), Column("compressed", ""),
    ]  # fmt: skip
    rows, means = [], []
    for name, job in jobs.items():
        total, n = _totals(job), max(1, len(job["ranks"]))
        seconds = job.get("seconds") or None
        faster = first["seconds"] / seconds if seconds and first.get("seconds") else None
        codec = total["compress_seconds"] + total["decompress_seconds"]
        rows.append(
            [name, seconds, faster, total["raw_bytes"], total["wire_bytes"], total["ratio"],
             codec / n, total["wait_seconds"] / n, int(total["messages"]),
             int(total["compressed_messages"])]
        )  # fmt: skip
        each = [spent(job, rank) for rank in job["ranks"]]
        means.append({kind: sum(s[kind] for s in each) / n for kind in _COLOURS})
    figure = figures.stacked(
        list(jobs), {k: [m[k] for m in means] for k in _COLOURS}, "seconds of a mean rank", _COLOURS
    )
    return Section(
        "Jobs side by side",
        [
            Words("In short", list(_against(rows))),
            Plot("Where a mean rank's time went", {"": figure}),
            Table("Jobs", columns, rows),
        ],
    )


def _against(rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    first = rows[0]
    for name, seconds, faster, _, wire, *_ in rows[1:]:
        if faster is not None:
            how = "is" if faster >= 1 else "takes"
            how += f" {max(faster, 1 / faster):.2f} times as {'fast' if faster >= 1 else 'long'} as"
            each = f"{units.seconds(seconds)} against {units.seconds(first[1])}"
            yield f"{name} {how} {first[0]} ({each})."
        if first[4]:
            yield f"{name} puts {units.size(wire)} on the wire, {first[0]} {units.size(first[4])}."


def build(inputs: Sequence[Input]) -> list[Section]:
    jobs = {given.name: given.value for given in inputs}
    found = [_compared(jobs)] if len(jobs) > 1 else []
    for name, job in jobs.items():
        title = "The job" if len(jobs) == 1 else f"Job: {name}"
        content: list[parts.Part] = [_cards(job)]
        if trouble := list(_trouble(job)):
            content.append(Words("What went wrong", trouble, _LOST))
        if job["ranks"]:
            content.append(Words("Where time was lost", list(_where_lost(job)), _LOST))
        changes = list(_changes(job)) or [
            "Nothing that this report shows: what pays is compressed."
        ]
        content.append(Words("What to change", changes, "change"))
        if job["ranks"]:
            content.append(_breakdown(job))
        found.append(Section(title, content, " ".join(job.get("command") or [])[:300]))
    reported = {name: job for name, job in jobs.items() if job["ranks"]}
    if reported:
        found += [
            Section("Calls", [*_calls(reported), *_bypass_parts(reported)]),
            Section(
                "Sizes, peers and places", [*_sizes_and_peers(reported), *_site_parts(reported)]
            ),
            Section("Ranks and settings", [_rank_table(reported), *_facts(reported)]),
        ]
    return found
