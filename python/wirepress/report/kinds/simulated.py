# SPDX-License-Identifier: Apache-2.0
"""`wirepress simulate --json`, with --timeline also when each rank computed and exchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wirepress import units
from wirepress.report import figures, parts
from wirepress.report.expect import ANY, NUMBER, Maybe, Positive
from wirepress.report.kinds import first_row
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words

WHAT = "a simulation (wirepress simulate ... --json)"
ORDER = 40

EXPECTED = {
    "workload": str,
    "ranks": int,
    "iterations": int,
    "collective": Maybe(str),
    "latency": Maybe(NUMBER),
    "rows": [
        {
            "link": Positive,
            "engine": Maybe(str),
            "codec": Maybe(str),
            "compress_engines": Maybe(int),
            "decompress_engines": Maybe(int),
            "ratio": Maybe(NUMBER),
            "speed_up": NUMBER,
            "closed_form_seconds": Maybe(NUMBER),
            "seconds": Positive,
            "computing": [NUMBER],
            "exchange": [NUMBER],
            "messages": int,
            "bypassed": int,
            "raw_bytes": NUMBER,
            "wire_bytes": NUMBER,
            "intervals": Maybe([[[ANY]]]),
        }
    ],
}
_WORTH = 1.02
_MOST_RANKS, _MOST_SPANS = 16, 20_000
_COMPUTE, _EXCHANGE = "computing", "exchange"
_COLOURS = {_COMPUTE: figures.COMPUTE, _EXCHANGE: figures.WIRE}


def matches(value: Any) -> bool:
    row = first_row(value)
    return isinstance(row, dict) and {"computing", "exchange", "speed_up"} <= row.keys()


def _label(row: dict[str, Any]) -> str:
    if not row.get("codec"):
        return "raw"
    name = f"{row['codec']} on {row.get('engine')}"
    return name if _engines(row) == "1c1d" else f"{name}, {_engines(row)}"


def _engines(row: dict[str, Any]) -> str:
    """That compress and that expand, "16c2d"; "" of raw."""
    if not row.get("codec"):
        return ""
    return f"{row.get('compress_engines') or 1}c{row.get('decompress_engines') or 1}d"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _lost(rows: list[dict[str, Any]]) -> Iterator[str]:
    for link in parts.unique(row["link"] for row in rows):
        raw = next((r for r in rows if r["link"] == link and _label(r) == "raw"), None)
        if raw:
            waits = raw["seconds"] - _mean(raw["computing"])
            yield (
                f"{units.link(link)}, raw: {units.seconds(raw['seconds'])}, of which a mean rank "
                f"waits {units.seconds(waits)} ({parts.share(waits / raw['seconds'])}) for the "
                "exchange."
            )


def _advice(rows: list[dict[str, Any]]) -> Iterator[str]:
    for link in parts.unique(row["link"] for row in rows):
        here = [row for row in rows if row["link"] == link]
        best = min(here, key=lambda row: row["seconds"])
        if best["speed_up"] < _WORTH or _label(best) == "raw":
            yield f"{units.link(link)}: send raw; no codec here gains {parts.share(_WORTH - 1)}."
            continue
        bypass = ""
        if best["messages"] and best["bypassed"]:
            bypass = f"; {parts.share(best['bypassed'] / best['messages'])} of its messages go raw"
        yield (
            f"{units.link(link)}: {_label(best)}, {best['speed_up']:.2f} times as fast as raw "
            f"({units.seconds(best['seconds'])}, {units.size(best['wire_bytes'])} on the wire "
            f"instead of {units.size(best['raw_bytes'])}){bypass}."
        )


def _breakdown(rows: list[dict[str, Any]]) -> Plot:
    views = {}
    for link in parts.unique(row["link"] for row in rows):
        here = [row for row in rows if row["link"] == link]
        split = {
            _COMPUTE: [_mean(row["computing"]) for row in here],
            _EXCHANGE: [max(0.0, row["seconds"] - _mean(row["computing"])) for row in here],
        }
        views[units.link(link)] = figures.stacked(
            [_label(row) for row in here], split, "seconds of a mean rank", _COLOURS
        )
    return Plot("Where time goes", views, "link",
                "Exchange: codecs, wire and waiting for others, where computing does not hide it.",
                )  # fmt: skip


def _sweep(rows: list[dict[str, Any]]) -> Iterator[Plot]:
    if len({row["link"] for row in rows}) < 2:
        return
    lines: dict[str, list[tuple[float | None, float | None]]] = {}
    for row in rows:
        lines.setdefault(_label(row), []).append((8 * row["link"] / 1e9, row["speed_up"]))
    yield Plot(
        "Speed-up by the link's rate",
        {
            "": figures.lines(
                {name: sorted(points) for name, points in lines.items()},  # type: ignore[type-var]
                figures.link_axis([row["link"] for row in rows]),
                figures.axis("speed-up"),
            )
        },
    )


def _spans(intervals: list[Any], place: str) -> list[list[figures.Span]]:
    """Raises Unexpected for what is no [what, begin, end]."""
    found = []
    for rank in intervals[:_MOST_RANKS]:
        for span in rank:
            if len(span) != 3 or not parts.is_number(span[1]) or not parts.is_number(span[2]):
                raise parts.Unexpected(f"{place}: expected [what, begin, end] in seconds")
        found.append(
            [
                (_COMPUTE if what == "compute" else _EXCHANGE, begin, end)
                for what, begin, end in rank
            ]
        )
    return found


def _timeline(rows: list[dict[str, Any]]) -> Iterator[Plot]:
    views, cut = {}, False
    for i, row in enumerate(rows):
        if not row.get("intervals"):
            continue
        ranks = _spans(row["intervals"], f"rows[{i}].intervals")
        most = _MOST_SPANS // len(ranks)
        cut |= any(len(spans) > most for spans in ranks) or len(row["intervals"]) > len(ranks)
        named = [(f"rank {n}", spans[:most]) for n, spans in enumerate(ranks)]
        views[f"{_label(row)}, {units.link(row['link'])}"] = figures.timeline(
            named, _COLOURS, "seconds"
        )
    if views:
        note = f"The first {_MOST_RANKS} ranks and {_MOST_SPANS:,} spans." if cut else ""
        yield Plot("When each rank did what", views, "simulation", note)


def _table(rows: list[dict[str, Any]]) -> Table:
    columns = [
        Column("link"), Column("codec"), Column("engines"), Column("seconds", "seconds"),
        Column("gain", "x"), Column("computing", "%"), Column("raw", "bytes"),
        Column("on the wire", "bytes"), Column("sent raw", "%"), Column("messages", ""),
        Column("closed form", "+%", "of wirepress plan, against the simulation"),
    ]  # fmt: skip
    cells = []
    for row in rows:
        form = row.get("closed_form_seconds")
        coded = row.get("codec")
        cells.append(
            [units.link(row["link"]), _label(row), _engines(row), row["seconds"], row["speed_up"],
             _mean(row["computing"]) / row["seconds"], row["raw_bytes"], row["wire_bytes"],
             row["bypassed"] / row["messages"] if coded and row["messages"] else None,
             row["messages"], None if form is None else form / row["seconds"] - 1]
        )  # fmt: skip
    return Table("All simulations", columns, cells)


def _compared(inputs: Sequence[Input]) -> Section:
    columns = [
        Column("file"), Column("link"), Column("ranks", ""), Column("best"),
        Column("raw", "seconds"), Column("best takes", "seconds"), Column("gain", "x"),
    ]  # fmt: skip
    rows = []
    for given in inputs:
        all_rows = given.value["rows"]
        for link in parts.unique(row["link"] for row in all_rows):
            here = [row for row in all_rows if row["link"] == link]
            best = min(here, key=lambda row: row["seconds"])
            rows.append(
                [given.name, units.link(link), given.value["ranks"], _label(best),
                 best["seconds"] * best["speed_up"], best["seconds"], best["speed_up"]]
            )  # fmt: skip
    return Section("Simulations side by side", [Table("The best of each", columns, rows)])


def build(inputs: Sequence[Input]) -> list[Section]:
    found = [_compared(inputs)] if len(inputs) > 1 else []
    for given in inputs:
        job, rows = given.value, given.value["rows"]
        cards = Cards(
            [
                ("job", job["workload"]),
                ("ranks", f"{job['ranks']:,}"),
                ("iterations", f"{job['iterations']:,}"),
                ("Allreduce", job.get("collective") or "as traced"),
                ("latency", units.seconds(job["latency"]) if job.get("latency") else "none"),
            ]
        )
        title = "The simulation" if len(inputs) == 1 else f"Simulation: {given.name}"
        content: list[parts.Part] = [
            cards, Words("Where time was lost", list(_lost(rows)), "lost"),
            Words("What to change", list(_advice(rows)), "change"), _breakdown(rows),
            *_sweep(rows), *_timeline(rows), _table(rows),
        ]  # fmt: skip
        found.append(Section(title, content))
    return found
