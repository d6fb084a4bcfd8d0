# SPDX-License-Identifier: Apache-2.0
"""One module for each kind of file.

A module has WHAT (the kind in words, as an error says it), matches(value), which looks at as little
as tells the kind, EXPECTED (what expect.check() holds a file to), and build(inputs), which makes
sections of one or several files. ORDER decides who is asked first; the most general come last.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Sequence
from typing import Any, Protocol

from wirepress.report.parts import Input, Section


class Kind(Protocol):
    WHAT: str
    EXPECTED: Any
    ORDER: int

    def matches(self, value: Any) -> bool: ...
    def build(self, inputs: Sequence[Input]) -> list[Section]: ...


@functools.cache
def known() -> tuple[Kind, ...]:
    modules: list[Any] = [
        importlib.import_module(f"{__name__}.{found.name}")
        for found in pkgutil.iter_modules(__path__)
    ]
    return tuple(sorted((m for m in modules if hasattr(m, "WHAT")), key=lambda m: m.ORDER))


def has(value: Any, *fields: str) -> bool:
    return isinstance(value, dict) and all(field in value for field in fields)


def first_row(value: Any, field: str = "rows") -> Any:
    """An object's first row; {} where it has none."""
    rows = value.get(field) if isinstance(value, dict) else None
    return rows[0] if isinstance(rows, list) and rows else {}
