# SPDX-License-Identifier: Apache-2.0
"""Ratio and speed of codecs: `wirepress bench --json`, and the same of bench/ (codecs, silesia).

A gain on a link is that of large messages whose steps overlap: min(ratio, codec / link), the closed
form of `wirepress plan` (sim/models.py).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from wirepress import api, units
from wirepress.errors import WirepressError
from wirepress.report import figures, parts
from wirepress.report.expect import NUMBER, Either, Maybe, Positive
from wirepress.report.kinds import first_row
from wirepress.report.parts import Cards, Column, Input, Plot, Section, Table, Words
from wirepress.sim import models

WHAT = "a measurement of codecs (wirepress bench --json FILE, or bench/results/codecs.json)"
ORDER = 20

_OF_COMMAND = {
    "file": str, "recipe": str, "kernel": str, "raw_size": Positive, "frame_size": Positive,
    "ratio": Positive, "compress_gbps": Positive, "decompress_gbps": Positive,
    "memcpy_gbps": Maybe(NUMBER),  # once: a figure for each row
}  # fmt: skip
_OF_BENCH = {
    "run": str, "data": str, "subject": str, "variant": str, "raw_size": Positive,
    "code_size": Positive, "ratio": Positive, "encode": Positive, "decode": Positive,
    "memcpy": Maybe(NUMBER),
}  # fmt: skip
EXPECTED = {
    "rows": [Either("recipe", _OF_COMMAND, _OF_BENCH)],
    "memcpy_gbps": Maybe(NUMBER),
    "date": Maybe(str),
    "command": Maybe(str),
    "threads": Maybe(int),
    "machine": Maybe({"cpu": Maybe(str), "cores": Maybe(int)}),
}
_LINKS = tuple(1e9 / 8 * rate for rate in (1, 10, 100))
_SWEEP = tuple(1e8 / 8 * 10 ** (i / 8) for i in range(30))  # 100 Mb/s to 420 Gb/s
_LINES = 5  # of each: without loss, with
_WORTH = 1.02  # a gain from which a codec is better than none


@dataclasses.dataclass(frozen=True)
class Speed:
    """One line: rates are raw bytes a second; `given`: the input it is of."""

    given: str
    data: str
    recipe: str
    kernel: str
    raw: float
    coded: float
    ratio: float
    compress: float
    expand: float
    copy: float | None

    @functools.cached_property
    def loss(self) -> str:
        """ "none", "some", or "" for what is no recipe of this library."""
        return _loss(self.recipe)

    @property
    def label(self) -> str:
        return f"{self.recipe} ({self.kernel})"

    @property
    def stage(self) -> models.Stage:
        return models.Stage(self.ratio, self.compress, self.expand)

    def gain(self, link: float) -> float:
        return models.gain(self.stage, link)


@functools.cache
def _loss(recipe: str) -> str:
    try:
        return "none" if api.Compressor(recipe).lossless() else "some"
    except WirepressError:
        return ""


def matches(value: Any) -> bool:
    row = first_row(value)
    return isinstance(row, dict) and (
        {"recipe", "kernel", "compress_gbps"} <= row.keys()
        or {"subject", "variant", "encode", "decode"} <= row.keys()
    )


def _speeds(given: Input) -> list[Speed]:
    found, copy = [], given.value.get("memcpy_gbps")
    for row in given.value["rows"]:
        if "recipe" in row:
            found.append(
                Speed(
                    given.name, row["file"], row["recipe"], row["kernel"], row["raw_size"],
                    row["frame_size"], row["ratio"], 1e9 * row["compress_gbps"],
                    1e9 * row["decompress_gbps"], _scaled(row.get("memcpy_gbps") or copy),
                )
            )  # fmt: skip
        else:
            found.append(
                Speed(
                    given.name, row["run"], row["subject"], row["variant"], row["raw_size"],
                    row["code_size"], row["ratio"], 1e9 * row["encode"], 1e9 * row["decode"],
                    _scaled(row.get("memcpy")),
                )
            )  # fmt: skip
    return found


def _scaled(value: float | None) -> float | None:
    return None if not value else 1e9 * value


# ---- sentences ------------------------------------------------------------------------------


def _best(speeds: Sequence[Speed], link: float) -> Speed:
    return max(speeds, key=lambda speed: speed.gain(link))


def _by_loss(speeds: Sequence[Speed]) -> Iterator[tuple[str, list[Speed]]]:
    """(file, rows of it): without loss, then those with some or not known."""
    for data in parts.unique(speed.data for speed in speeds):
        here = [speed for speed in speeds if speed.data == data]
        exact = [speed for speed in here if speed.loss == "none"]
        if exact:
            yield data, exact
        if rest := [speed for speed in here if speed.loss == "some"]:
            yield f"{data}, if values may differ", rest
        if rest := [speed for speed in here if not speed.loss]:
            yield f"{data}, by others", rest


def _advice(speeds: Sequence[Speed]) -> Iterator[str]:
    """For each file: what pays on which link."""
    for data, here in _by_loss(speeds):
        said = []
        for link in _LINKS:
            best = _best(here, link)
            gain = best.gain(link)
            what = "raw" if gain < _WORTH else f"{best.recipe}, {parts.factor(gain)} times raw"
            said.append(f"{units.link(link)}: {what}")
        text = f"{data}: {'; '.join(said)}."
        if pays := [speed for speed in here if speed.ratio >= _WORTH]:
            last = max(models.break_even(speed.stage) for speed in pays)
            text += f" From {units.link(last)} on nothing here pays."
        yield text


def _extremes(speeds: Sequence[Speed]) -> Iterator[str]:
    for data, here in _by_loss(speeds):
        small = max(here, key=lambda speed: speed.ratio)
        paying = [speed for speed in here if speed.ratio >= _WORTH]
        if not paying:
            yield f"{data}: nothing shrinks it by {parts.share(_WORTH - 1)}; send it raw."
            continue
        fast = max(paying, key=lambda speed: speed.compress)
        yield (
            f"{data}: {small.label} makes it smallest, {parts.factor(small.ratio)} times at "
            f"{units.rate(small.compress)}; {fast.label} is the fastest that shrinks it, "
            f"{units.rate(fast.compress)} at {parts.factor(fast.ratio)} times."
        )


# ---- plots and tables -----------------------------------------------------------------------


def _by_data(speeds: Sequence[Speed]) -> dict[str, list[Speed]]:
    found: dict[str, list[Speed]] = {}
    for speed in speeds:
        found.setdefault(speed.data, []).append(speed)
    return found


def _family(speed: Speed, several: bool) -> str:
    name = speed.recipe.split(":")[0]
    return f"{name} ({speed.given})" if several else name


def _scatter(speeds: Sequence[Speed], rate: str, several: bool) -> parts.Figure:
    series: dict[str, list[tuple[float, float, str]]] = {}
    for speed in speeds:
        text = f"{speed.label}: {speed.ratio:.3f}x, {units.rate(getattr(speed, rate))}"
        series.setdefault(_family(speed, several), []).append(
            (speed.ratio, getattr(speed, rate) / 1e9, text)
        )
    wide = max(s.ratio for s in speeds) > 20 * min(s.ratio for s in speeds)
    return figures.points(
        dict(sorted(series.items())),
        figures.axis("ratio (raw size / coded size)", log=wide),
        figures.axis("GB/s of raw data", log=True),
    )


def _ladder(speeds: Sequence[Speed], several: bool) -> parts.Figure:
    """The recipes that are best at some link rate, without loss and with, over all rates."""
    chosen = []
    for lossy in (False, True):
        group = [speed for speed in speeds if (speed.loss == "some") is lossy]
        if group:
            winners = parts.unique(_best(group, link) for link in _SWEEP)
            others = sorted(group, key=lambda speed: -speed.gain(_LINKS[1]))
            chosen += parts.unique([*winners, *others])[:_LINES]
    series: dict[str, list[tuple[float | None, float | None]]] = {
        "raw": [(8 * link / 1e9, 1.0) for link in _SWEEP]
    }
    for speed in chosen:
        name = f"{speed.label}, {speed.given}" if several else speed.label
        name += ", lossy" if speed.loss == "some" else ""
        series[name] = [(8 * link / 1e9, speed.gain(link)) for link in _SWEEP]
    return figures.lines(
        series,
        figures.axis("link, Gb/s", log=True),
        figures.axis("speed-up of large messages", log=True),
        marks=False,
    )


def _table(speeds: Sequence[Speed], several: bool) -> Table:
    columns = [
        Column("input"), Column("file"), Column("recipe"), Column("kernel"),
        Column("loss"), Column("raw", "bytes"),
        Column("coded", "bytes"), Column("ratio", "x"), Column("compresses", "rate"),
        Column("expands", "rate"), Column("of memcpy", "%", "compressing against copying"),
        *(Column(f"gain at {units.link(link)}", "x") for link in _LINKS),
    ]  # fmt: skip
    rows = [
        [s.given, s.data, s.recipe, s.kernel, s.loss, s.raw, s.coded, s.ratio, s.compress, s.expand,
         s.compress / s.copy if s.copy else None, *(s.gain(link) for link in _LINKS)]
        for s in speeds
    ]  # fmt: skip
    if not several:
        columns, rows = columns[1:], [row[1:] for row in rows]
    return Table("All of it", columns, rows)


def _compared(inputs: Sequence[Input], speeds: Sequence[Speed]) -> Section:
    """The rows that the first input has, too: how much faster or smaller."""
    first, *others = inputs
    known = {(s.data, s.recipe, s.kernel): s for s in speeds if s.given == first.name}
    columns = [
        Column("input"), Column("file"), Column("recipe"), Column("kernel"),
        Column("compresses", "rate"), Column("against", "+%", f"{first.name}'s"),
        Column("expands", "rate"), Column("against ", "+%", f"{first.name}'s"),
        Column("ratio", "x"), Column("against  ", "+%", f"{first.name}'s"),
    ]  # fmt: skip
    rows, words = [], []
    for other in others:
        changes = []
        for speed in (s for s in speeds if s.given == other.name):
            before = known.get((speed.data, speed.recipe, speed.kernel))
            if before is None:
                continue
            changes.append(speed.compress / before.compress)
            rows.append(
                [other.name, speed.data, speed.recipe, speed.kernel, speed.compress,
                 changes[-1] - 1, speed.expand, speed.expand / before.expand - 1, speed.ratio,
                 speed.ratio / before.ratio - 1]
            )  # fmt: skip
        if changes:
            words.append(
                f"{other.name} compresses at {parts.median(changes):.2f} times the speed of "
                f"{first.name}: the median of {len(changes)} rows, from {min(changes):.2f} to "
                f"{max(changes):.2f}."
            )
        else:
            words.append(
                f"{other.name} and {first.name} have no row of one file, recipe and kernel."
            )
    content: list[parts.Part] = [Words("In short", words)]
    if rows:
        content.append(Table(f"Against {first.name}", columns, rows))
    return Section("Measurements side by side", content)


def build(inputs: Sequence[Input]) -> list[Section]:
    speeds = [speed for given in inputs for speed in _speeds(given)]
    several = len(inputs) > 1
    found = [_compared(inputs, speeds)] if several else []
    about = "; ".join(
        f"{(given.value.get('machine') or {}).get('cpu') or 'machine not known'}, "
        f"{given.value.get('date') or 'no date'}"
        for given in inputs
    )
    if not speeds:
        return [*found, Section("Codecs", [Words("", ["The file has no rows."])], about)]
    by_data = _by_data(speeds)
    cards = Cards(
        [
            ("measured", f"{len(speeds):,} rows"),
            ("files", str(len(by_data))),
            ("recipes", str(len({speed.recipe for speed in speeds}))),
            ("smallest", parts.times(max(speed.ratio for speed in speeds))),
            ("fastest", units.rate(max(speed.compress for speed in speeds))),
        ]
    )
    scatter = {
        title: Plot(title, {d: _scatter(s, rate, several) for d, s in by_data.items()}, "file")
        for title, rate in (
            ("What a ratio costs: compressing", "compress"),
            ("What a ratio costs: expanding", "expand"),
        )
    }
    ladder = {data: _ladder(here, several) for data, here in by_data.items()}
    content = [
        cards,
        Words("What there is", list(_extremes(speeds))),
        Words("What to send with, by the link", list(_advice(speeds)), "change"),
        Plot("Speed-up by the link's rate", ladder, "file",
             "Large messages whose steps overlap: min(ratio, codec / link)."),
        *scatter.values(),
        _table(speeds, several),
    ]  # fmt: skip
    return [*found, Section("Codecs", content, about)]
