# SPDX-License-Identifier: Apache-2.0
"""Any other measurement, as bench/ and the examples write them: objects with lists of rows.

Rows become tables whose columns are found by looking: objects are flattened, lists of numbers stand
for their median. lenses.py adds figures to rows that it knows; the rest the reader draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wirepress.report import parts
from wirepress.report.kinds import lenses
from wirepress.report.parts import Column, Explorer, Input, Section, Table

WHAT = "a measurement of bench/ or the examples: an object with command, machine or rows"
ORDER = 90
EXPECTED = object

_SIGNS = ("command", "machine", "rows", "runs", "policies_command")
_PLAIN = ("rows", "results", "table", "runs")  # lists whose names say nothing
_MOST_WORDS = 8  # of a list of texts that are shown
_DEEP = 3  # levels that are looked into
_MOST_COLUMNS = 40
_FEW = 3  # lists of a kind that have a section each
_SUFFIXES = (
    ("_bytes", "bytes"), ("_seconds", "seconds"), ("bytes", "bytes"), ("size", "bytes"),
    ("seconds", "seconds"), ("ratio", "x"),
)  # fmt: skip


def matches(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if any(sign in value for sign in _SIGNS):
        return True
    # several measurements by name
    return bool(value) and all(
        isinstance(v, dict) and any(sign in v for sign in _SIGNS) for v in value.values()
    )


# ---- from JSON to rows ----------------------------------------------------------------------


def _is_row_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def flat(value: dict[str, Any], before: str = "", deep: int = 0) -> Iterator[tuple[str, Any]]:
    """(name, number or text) of an object's fields."""
    for key, item in value.items():
        name = f"{before}{key}"
        if isinstance(item, dict) and deep < _DEEP:
            yield from flat(item, f"{name} ", deep + 1)
        elif _is_row_list(item):
            numbers: dict[str, list[float]] = {}
            for inner in item:
                for field, number in inner.items():
                    if parts.is_number(number):
                        numbers.setdefault(field, []).append(number)
            yield from ((f"{name} {f}", parts.median(seen)) for f, seen in numbers.items())
        elif isinstance(item, list) and item and all(parts.is_number(v) for v in item):
            yield name, parts.median(item)
        elif isinstance(item, list) and all(isinstance(v, (str, int, float)) for v in item):
            yield name, ", ".join(str(v) for v in item[:_MOST_WORDS])
        elif isinstance(item, list):
            yield name, f"{len(item)} lists"
        elif isinstance(item, bool):
            yield name, "yes" if item else "no"
        else:
            yield name, item


def tables(
    value: dict[str, Any], before: str = "", deep: int = 0
) -> Iterator[tuple[str, list[Any]]]:
    """(name, rows) of the lists of objects; many alike are one, with a column for their names."""
    if before and _are_alike(value):
        yield before.rstrip(), [{"name": key} | row for key, rows in value.items() for row in rows]
        return
    for key, item in value.items():
        name = f"{before}{key}"
        if _is_row_list(item):
            yield name, item
        elif isinstance(item, dict) and deep < _DEEP:
            yield from tables(item, f"{name} ", deep + 1)


def _are_alike(value: dict[str, Any]) -> bool:
    """Whether these are more than a few lists, of which one has all fields of the others."""
    lists = list(value.values())
    if len(lists) <= _FEW or not all(_is_row_list(rows) for rows in lists):
        return False
    fields = [set().union(*rows) for rows in lists]
    return "name" not in set().union(*fields) and max(fields, key=len) == set().union(*fields)


def _unit(name: str, numeric: bool) -> str | None:
    if not numeric:
        return None
    return next((unit for suffix, unit in _SUFFIXES if name.endswith(suffix)), "")


def _columns(rows: list[dict[str, Any]]) -> list[Column]:
    found = []
    for name in parts.unique(name for row in rows for name in row)[:_MOST_COLUMNS]:
        seen = [row.get(name) for row in rows if row.get(name) is not None]
        numeric = bool(seen) and all(parts.is_number(v) for v in seen)
        found.append(Column(name, _unit(name, numeric)))
    return sorted(found, key=lambda column: column.unit is not None)  # what it is, then how much


def _cells(rows: list[dict[str, Any]], columns: Sequence[Column]) -> list[list[Any]]:
    return [
        [row.get(c.name) if c.unit is not None or row.get(c.name) is None else str(row[c.name])
         for c in columns]
        for row in rows
    ]  # fmt: skip


def _explorer(title: str, columns: Sequence[Column], cells: list[list[Any]]) -> Iterator[Explorer]:
    """Only where there is something to draw."""
    varied = [c for i, c in enumerate(columns) if len({str(row[i]) for row in cells}) > 1]
    numbers = [c.name for c in varied if c.unit is not None]
    texts = [c.name for c in varied if c.unit is None]
    if len(cells) < 3 or not numbers or len(varied) < 2:
        return
    x = next((n for n in numbers if n in ("size", "ratio")), texts[0] if texts else numbers[0])
    kinds = {c.name: len({row[i] for row in cells}) for i, c in enumerate(columns)}
    y = max((n for n in numbers if n != x), key=lambda n: kinds[n], default=numbers[0])
    yield Explorer(title, varied, [
        [row[columns.index(c)] for c in varied] for row in cells
    ], (x, y, next((n for n in texts if n != x), "none")))  # fmt: skip


# ---- the page -------------------------------------------------------------------------------


def _facts(inputs: Sequence[Input]) -> Table:
    rows = []
    for given in inputs:
        kept = {k: v for k, v in given.value.items() if not _is_row_list(v)}
        rows += [[given.name, name, str(v)] for name, v in flat(kept) if v is not None]
    columns = [Column("file"), Column("what"), Column("value")]
    if len(inputs) == 1:
        columns, rows = columns[1:], [row[1:] for row in rows]
    return Table("How it was measured", columns, rows)


def build(inputs: Sequence[Input]) -> list[Section]:
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for given in inputs:
        for name, rows in tables(given.value):
            found.setdefault(name, []).extend((given.name, row) for row in rows)
    sections = []
    for name, named in found.items():
        rows = [row for _, row in named]
        several = len(inputs) > 1
        flattened = [
            ({"input": given} if several else {}) | dict(flat(row)) for given, row in named
        ]
        content: list[parts.Part] = [*lenses.look(named, several)]
        columns = _columns(flattened)
        cells = _cells(flattened, columns)
        content += _explorer("Draw it yourself", columns, cells)
        note = "Lists of numbers stand for their median." if any(
            isinstance(v, list) for row in rows for v in row.values()
        ) else ""  # fmt: skip
        content.append(Table("Rows", columns, cells, note))
        title = "What was measured" if name in _PLAIN else name
        sections.append(Section(title, content))
    return [*sections, Section("The measurement", [_facts(inputs)])]
