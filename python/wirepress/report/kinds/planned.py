# SPDX-License-Identifier: Apache-2.0
"""`wirepress plan --json`: what was asked, its answer in sentences, and what else there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wirepress import units
from wirepress.report import figures, parts
from wirepress.report.expect import ANY, NUMBER, Maybe
from wirepress.report.kinds import has
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words

WHAT = "a plan (wirepress plan ... --json)"
ORDER = 30

EXPECTED = {
    "request": {
        "size": NUMBER,
        "workers": int,
        "link": NUMBER,
        "latency": NUMBER,
        "scheme": str,
        "compute": NUMBER,
        "overlap": bool,
    },
    "plain": {"exchange_seconds": NUMBER, "step_seconds": NUMBER},
    "options": [
        {
            "engine": str,
            "codec": str,
            "ratio": NUMBER,
            "compress_rate": NUMBER,
            "decompress_rate": NUMBER,
            "exchange_seconds": NUMBER,
            "step_seconds": NUMBER,
            "speed_up": NUMBER,
            "compress_engines": int,
            "decompress_engines": int,
            "lossless": Maybe(bool),
            "full_ratio_until_link": Maybe(ANY),
            "break_even_link": Maybe(ANY),
            "joules_per_gb": Maybe(NUMBER),
            "source": Maybe(str),
            "ratio_data": Maybe(str),
        }
    ],
    "sweep": Maybe(
        [{"link": NUMBER, "best": Maybe(str), "step_seconds": NUMBER, "speed_up": NUMBER}]
    ),
    "sentences": [str],
    "left_out": Maybe({str: str}),
}
_BARS = 16


def matches(value: Any) -> bool:
    return has(value, "request", "options", "sentences")


def _label(option: dict[str, Any]) -> str:
    return f"{option['codec']} on {option['engine']}"


def _cards(plan: dict[str, Any]) -> Cards:
    request, best = plan["request"], plan["options"][:1]
    pairs = [
        ("exchanged a step", units.size(request["size"])),
        ("workers", str(request["workers"])),
        ("scheme", request["scheme"]),
        ("link", units.link(request["link"])),
        ("a step, raw", units.seconds(plan["plain"]["step_seconds"])),
    ]
    if best and not plan.get("raw_is_best"):
        pairs += [
            ("a step, best", units.seconds(best[0]["step_seconds"])),
            ("gain", parts.times(best[0]["speed_up"])),
        ]
    return Cards(pairs)


def _steps(plan: dict[str, Any]) -> Plot:
    """Computing and exchange, for the best options; with overlap, what is not hidden."""
    compute = plan["request"]["compute"]
    rows = [("raw", plan["plain"]["step_seconds"])]
    rows += [(_label(o), o["step_seconds"]) for o in plan["options"][:_BARS]]
    split = {
        "computing": [min(compute, step) for _, step in rows],
        "exchange that shows": [max(0.0, step - compute) for _, step in rows],
    }
    colours = {"computing": figures.COMPUTE, "exchange that shows": figures.WIRE}
    if not compute:
        del split["computing"]
    figure = figures.stacked([name for name, _ in rows], split, "seconds of a step", colours)
    return Plot("What a step takes", {"": figure}, note=f"The best {_BARS} options at most.")


def _options(plan: dict[str, Any]) -> Table:
    return parts.from_rows(
        "All options",
        plan["options"],
        [
            ("engine", "engine", None), ("codec", "codec", None),
            ("compress_engines", "compressors", ""), ("decompress_engines", "expanders", ""),
            ("ratio", "ratio", "x"), ("compress_rate", "compresses", "rate"),
            ("decompress_rate", "expands", "rate"), ("exchange_seconds", "exchange", "seconds"),
            ("step_seconds", "step", "seconds"), ("speed_up", "gain", "x"),
            ("full_ratio_until_link", "whole ratio up to", "link"),
            ("break_even_link", "pays up to", "link"), ("joules_per_gb", "J per GB", ""),
            ("ratio_data", "ratio of", None), ("source", "source", None),
        ],
    )  # fmt: skip


def _sweeps(plans: dict[str, dict[str, Any]]) -> list[parts.Part]:
    found = {name: plan["sweep"] for name, plan in plans.items() if plan.get("sweep")}
    if not found:
        return []
    lines = {
        name: [(8 * row["link"] / 1e9, row["speed_up"]) for row in rows]
        for name, rows in found.items()
    }
    said = {
        name: [
            f"{units.link(row['link'])}: {row.get('best') or 'raw'}, {row['speed_up']:.2f}x"
            for row in rows
        ]
        for name, rows in found.items()
    }
    figure = figures.lines(
        lines,
        figures.link_axis([row["link"] for rows in found.values() for row in rows]),
        figures.axis("gain of the best"),
        said,
    )
    rows = [
        [name, row["link"], row.get("best") or "raw", row["step_seconds"], row["speed_up"]]
        for name, sweep in found.items() for row in sweep
    ]  # fmt: skip
    columns = [Column("plan"), Column("link", "link"), Column("best"), Column("step", "seconds"),
               Column("gain", "x")]  # fmt: skip
    if len(plans) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    return [Plot("The best at other links", {"": figure}), Table("Links", columns, rows)]


def _compared(plans: dict[str, dict[str, Any]]) -> Section:
    columns = [
        Column("plan"), Column("exchanged", "bytes"), Column("workers", ""), Column("link", "link"),
        Column("best"), Column("raw step", "seconds"), Column("best step", "seconds"),
        Column("gain", "x"),
    ]  # fmt: skip
    rows = []
    for name, plan in plans.items():
        raw = not plan["options"] or bool(plan.get("raw_is_best"))
        best = None if raw else plan["options"][0]
        step = plan["plain"]["step_seconds"]
        rows.append(
            [name, plan["request"]["size"], plan["request"]["workers"], plan["request"]["link"],
             _label(best) if best else "raw", step, best["step_seconds"] if best else step,
             best["speed_up"] if best else 1.0]
        )  # fmt: skip
    return Section("Plans side by side", [Table("Plans", columns, rows)])


def build(inputs: Sequence[Input]) -> list[Section]:
    plans = {given.name: given.value for given in inputs}
    found = [_compared(plans)] if len(plans) > 1 else []
    for name, plan in plans.items():
        title = "The plan" if len(plans) == 1 else f"Plan: {name}"
        content: list[parts.Part] = [
            _cards(plan), Words("What to do, and why", plan["sentences"], "change"), _steps(plan),
            _options(plan),
        ]  # fmt: skip
        if plan.get("left_out"):
            rows = [list(pair) for pair in plan["left_out"].items()]
            content.append(Table("Left out", [Column("what"), Column("why")], rows))
        found.append(Section(title, content))
    sweeps = _sweeps(plans)
    return [*found, Section("Other links", sweeps)] if sweeps else found
