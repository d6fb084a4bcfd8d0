# SPDX-License-Identifier: Apache-2.0
"""A file of the frame store: `wirepress store ls --json` and `wirepress store check --json`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from wirepress import units
from wirepress.report import figures, parts
from wirepress.report.expect import Either, Maybe
from wirepress.report.kinds import has
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words

WHAT = "a frame store's file (wirepress store ls or check ... --json)"
ORDER = 80

_LISTED = {
    "dtype": str,
    "shape": [int],
    "frames": [{"step": int, "offset": int, "stored": int}],
}
_CHECKED = {
    "frames": int,
    "damaged": int,
    "torn_bytes": int,
    "records": [{"step": int, "offset": int, "status": str, "kind": Maybe(str)}],
}
EXPECTED = Either("shape", _LISTED, _CHECKED)


def matches(value: Any) -> bool:
    return has(value, "frames", "dtype", "shape") or has(value, "records", "torn_bytes")


def _raw_size(store: dict[str, Any]) -> float:
    from wirepress import arrays

    return float(arrays.dtype_size(arrays.dtype_code(store["dtype"])) * math.prod(store["shape"]))


def _listed(stores: dict[str, dict[str, Any]]) -> Section:
    raws = {name: _raw_size(store) for name, store in stores.items()}
    lines = {
        name: [(f["step"], raws[name] / f["stored"]) for f in s["frames"] if f["stored"]]
        for name, s in stores.items()
    }
    columns = [Column("store"), Column("step", ""), Column("offset", ""), Column("stored", "bytes"),
               Column("ratio", "x")]  # fmt: skip
    rows = [
        [name, f["step"], f["offset"], f["stored"], parts.quotient(raws[name], f["stored"])]
        for name, s in stores.items() for f in s["frames"]
    ]  # fmt: skip
    said, cards = [], []
    for name, s in stores.items():
        stored = sum(f["stored"] for f in s["frames"])
        raw = raws[name] * len(s["frames"])
        said.append(
            f"{name}: {len(s['frames']):,} frames of {s['dtype']} {tuple(s['shape'])}, "
            f"{units.size(raw)} in {units.size(stored)} ({parts.quotient(raw, stored):.2f}x)."
        )
        if lines[name]:
            (first, worst), (_, best) = (pick(lines[name], key=lambda pair: pair[1])
                                         for pick in (min, max))  # fmt: skip
            said.append(
                f"Step {first} shrinks least, {worst:.2f} times; the best {best:.2f} times."
            )
        cards.append((name, parts.times(parts.quotient(raw, stored))))
    if len(stores) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    figure = figures.lines(lines, figures.axis("step"), figures.axis("ratio"),
                           marks=max(map(len, lines.values())) < 100)  # fmt: skip
    content: list[parts.Part] = [
        Cards(cards), Words("", said), Plot("Ratio by step", {"": figure}),
        Table("Frames", columns, rows),
    ]  # fmt: skip
    return Section("Frames of the store", content)


def _checked(stores: dict[str, dict[str, Any]]) -> Section:
    columns = [Column("store"), Column("step", ""), Column("offset", ""), Column("kind"),
               Column("status")]  # fmt: skip
    rows = [
        [name, r["step"], r["offset"], r.get("kind"), r["status"]]
        for name, s in stores.items() for r in s["records"]
    ]  # fmt: skip
    said = []
    for name, s in stores.items():
        text = f"{name}: {s['frames']:,} good frames, {s['damaged']:,} damaged, "
        text += f"{units.size(s['torn_bytes'])} torn."
        if s["torn_bytes"]:
            text += " `wirepress store repair` cuts what is torn."
        if s["damaged"]:
            bad = [str(r["step"]) for r in s["records"] if r["status"] != "ok"]
            text += f" Lost: {'steps' if len(bad) > 1 else 'step'} {parts.listed(bad[:20])}."
        said.append(text)
    names = list(stores)
    figure = figures.stacked(
        names,
        {"good": [s["frames"] for s in stores.values()],
         "damaged": [s["damaged"] for s in stores.values()]},
        "frames", {"good": figures.WIRE, "damaged": figures.WAIT}, "",
    )  # fmt: skip
    if len(stores) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    hurt = any(s["damaged"] or s["torn_bytes"] for s in stores.values())
    return Section(
        "Check of the store",
        [Words("", said, "lost" if hurt else ""), Plot("Frames", {"": figure}),
         Table("Records", columns, rows)],
    )  # fmt: skip


def build(inputs: Sequence[Input]) -> list[Section]:
    listed = {given.name: given.value for given in inputs if "shape" in given.value}
    checked = {given.name: given.value for given in inputs if "shape" not in given.value}
    return [*([_listed(listed)] if listed else []), *([_checked(checked)] if checked else [])]
