# SPDX-License-Identifier: Apache-2.0
"""What a page is made of: sections with cards, sentences, tables and plots; and how numbers look.

Everything here holds plain text. page.py escapes it, and nothing else writes HTML.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Any

from wirepress import units

Figure = dict[str, Any]  # plotly's: {"data": [...], "layout": {...}}


class Unexpected(Exception):
    """A file that is not what its kind says; the text names the place and what was expected."""


@dataclasses.dataclass(frozen=True)
class Input:
    """A file's content, and what it is called on the page (unique)."""

    name: str
    value: Any


# ---- numbers --------------------------------------------------------------------------------


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def plain(value: float) -> str:
    """Three or four digits, thousands apart."""
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= 1e-3 or not value else f"{value:.2e}"


def times(value: float) -> str:
    return f"{factor(value)}x"


def factor(value: float) -> str:
    """Of a ratio or a gain."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def share(value: float) -> str:
    return f"{100 * value:.0f} %" if abs(value) >= 0.0995 else f"{100 * value:.2g} %"


def _of(show: Callable[[float], str]) -> Callable[[Any], str]:
    return lambda value: show(value) if is_number(value) else "-"


UNITS: dict[str, Callable[[Any], str]] = {
    "": _of(plain),
    "bytes": _of(units.size),
    "seconds": _of(units.seconds),
    "rate": _of(units.rate),
    "link": _of(units.link),
    "x": _of(times),
    "%": _of(share),
    "+%": _of(lambda value: f"{100 * value:+.2f} %" if abs(value) >= 5e-5 else "0 %"),
}


def quotient(a: float, b: float, otherwise: float = 1.0) -> float:
    return a / b if b else otherwise


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def short(text: object, most: int = 26) -> str:
    """For axes: the middle is left out, as ends tell names apart."""
    words = str(text)
    if len(words) <= most:
        return words
    head = (most - 1) // 2
    return f"{words[:head]}…{words[len(words) - (most - 1 - head) :]}"


def file_name(path: str) -> str:
    return PurePath(path).name or path


def unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def listed(words: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


# ---- parts ----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Column:
    """`unit`: a key of UNITS, whose cells are numbers (or None), or None: text."""

    name: str
    unit: str | None = None
    about: str = ""

    def show(self, value: Any) -> str:
        if self.unit is not None:
            return UNITS[self.unit](value)
        return "" if value is None else str(value)


@dataclasses.dataclass(frozen=True)
class Table:
    """Sorts by every column, and filters: by words, and by a choice where a column has few."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Plot:
    """A figure, or one for each value of `facet`: then the reader chooses, and a table in the same
    section that has a column of that name is filtered along."""

    title: str
    views: dict[str, Figure]
    facet: str = ""
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Explorer:
    """Rows of a table whose columns the reader puts on the axes. `first`: names of x, y, colour."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    first: tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Words:
    """Sentences under a heading. `about`: "lost", "change" or "" choose the mark beside them."""

    title: str
    sentences: Sequence[str]
    about: str = ""


@dataclasses.dataclass(frozen=True)
class Cards:
    """The few numbers to see first: (what, value) pairs."""

    pairs: Sequence[tuple[str, str]]


Part = Table | Plot | Explorer | Words | Cards


@dataclasses.dataclass(frozen=True)
class Section:
    title: str
    parts: Sequence[Part]
    about: str = ""


def from_rows(
    title: str, rows: Sequence[dict[str, Any]], columns: Sequence[tuple[str, str, str | None]]
) -> Table:
    """A table of objects; `columns` are (field, heading, unit)."""
    return Table(
        title,
        [Column(name, unit) for _, name, unit in columns],
        [[row.get(field) for field, _, _ in columns] for row in rows],
    )
