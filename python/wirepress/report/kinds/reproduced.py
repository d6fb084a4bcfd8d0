# SPDX-License-Identifier: Apache-2.0
"""`wirepress reproduce --json`: the papers' numbers beside ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from wirepress.report import figures, parts
from wirepress.report.expect import NUMBER, Maybe
from wirepress.report.kinds import has
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words

WHAT = "the papers' numbers (wirepress reproduce ... --json)"
ORDER = 50

EXPECTED = {
    "experiments": [
        {
            "id": str,
            "item": str,
            "title": str,
            "class": str,
            "rows": [
                {
                    "what": str,
                    "paper": Maybe(NUMBER),
                    "ours": Maybe(NUMBER),
                    "status": str,
                    "reason": Maybe(str),
                }
            ],
            "notes": Maybe([str]),
        }
    ]
}
_COLOURS = {
    "matches": figures.WIRE, "deviates": figures.WAIT, "impossible": figures.CODEC,
    "not run": figures.GREY, "ours": figures.COMPUTE,
}  # fmt: skip


def matches(value: Any) -> bool:
    return has(value, "experiments")


def _rows(value: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for experiment in value["experiments"]:
        for row in experiment["rows"]:
            yield experiment, row


def _deviation(row: dict[str, Any]) -> float | None:
    if not row.get("paper") or row.get("ours") is None:
        return None
    return float(row["ours"] / row["paper"] - 1)


def _scatter(value: dict[str, Any]) -> Iterator[Plot]:
    series: dict[str, list[tuple[float, float, str]]] = {}
    for experiment, row in _rows(value):
        paper, ours = row.get("paper"), row.get("ours")
        if paper and ours and paper > 0 and ours > 0:
            text = f"{experiment['id']}, {row['what']}: paper {paper:.6g}, ours {ours:.6g}"
            series.setdefault(row["status"], []).append((paper, ours, text))
    if series:
        figure = figures.points(
            series, figures.axis("paper", log=True), figures.axis("ours", log=True)
        )
        for trace in figure["data"]:
            trace["marker"]["color"] = _COLOURS.get(trace["name"], figures.GREY)
        for name in "xaxis", "yaxis":
            figure["layout"][name]["dtick"] = 1
        seen = [mark[0] for marks in series.values() for mark in marks]
        ends = [min(seen), max(seen)]
        diagonal = {"type": "scatter", "mode": "lines", "name": "the same", "x": ends, "y": ends,
                    "line": {"color": figures.GREY, "width": 1}, "hoverinfo": "skip"}  # fmt: skip
        figure["data"].insert(0, diagonal)
        yield Plot("Ours against the papers'", {"": figure})


def _statuses(value: dict[str, Any]) -> Plot:
    ids = [experiment["id"] for experiment in value["experiments"]]
    counts = {e["id"]: Counter(row["status"] for row in e["rows"]) for e in value["experiments"]}
    kinds = parts.unique([*_COLOURS, *(row["status"] for _, row in _rows(value))])
    used = [kind for kind in kinds if any(counts[i][kind] for i in ids)]
    split = {kind: [float(counts[i][kind]) for i in ids] for kind in used}
    return Plot(
        "How many numbers came out", {"": figures.stacked(ids, split, "rows", _COLOURS, "")}
    )


def _table(inputs: Sequence[Input]) -> Table:
    columns = [
        Column("input"), Column("experiment"), Column("class"), Column("number"),
        Column("paper", ""), Column("ours", ""), Column("deviation", "+%"), Column("status"),
        Column("reason"),
    ]  # fmt: skip
    rows = [
        [given.name, e["id"], e["class"], row["what"], row.get("paper"), row.get("ours"),
         _deviation(row), row["status"], row.get("reason") or ""]
        for given in inputs for e, row in _rows(given.value)
    ]  # fmt: skip
    if len(inputs) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    return Table("All numbers", columns, rows)


def _compared(inputs: Sequence[Input]) -> Section:
    """Rows whose number or status is another in a later file."""
    known = {(e["id"], row["what"]): row for e, row in _rows(inputs[0].value)}
    changed = []
    for given in inputs[1:]:
        for e, row in _rows(given.value):
            old = known.get((e["id"], row["what"]))
            if old and (old["status"] != row["status"] or old.get("ours") != row.get("ours")):
                changed.append([given.name, e["id"], row["what"], old.get("ours"), row.get("ours"),
                                old["status"], row["status"]])  # fmt: skip
    columns = [
        Column("input"), Column("experiment"), Column("number"), Column("before", ""),
        Column("now", ""), Column("status before"), Column("status"),
    ]  # fmt: skip
    said = f"{len(changed)} numbers are others than in {inputs[0].name}."
    content: list[parts.Part] = [Words("", [said])]
    return Section("Side by side", [*content, Table("Changed", columns, changed)])


def build(inputs: Sequence[Input]) -> list[Section]:
    found = [_compared(inputs)] if len(inputs) > 1 else []
    for given in inputs:
        rows = list(_rows(given.value))
        counts = Counter(row["status"] for _, row in rows)
        far = sorted(
            ((abs(d), e, row) for e, row in rows if (d := _deviation(row)) is not None
             and row["status"] == "deviates"), key=lambda triple: -triple[0],
        )  # fmt: skip
        words = [
            f"{e['id']}, {row['what']}: {parts.plain(row['ours'])} instead of "
            f"{parts.plain(row['paper'])}" + (f": {row['reason']}." if row.get("reason") else ".")
            for _, e, row in far[:8]
        ]
        content: list[parts.Part] = [
            Cards([("numbers", str(len(rows))), *((k, str(n)) for k, n in counts.items())])
        ]
        content += [Words("What deviates most", words, "lost")] if words else []
        content += [_statuses(given.value), *_scatter(given.value)]
        title = "The papers' numbers" if len(inputs) == 1 else f"The papers' numbers: {given.name}"
        found.append(Section(title, content))
    return [*found, Section("Number by number", [_table(inputs)])]
