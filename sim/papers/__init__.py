# SPDX-License-Identifier: Apache-2.0
"""Tables and figures of five papers: what they print, and what their parameters give.

Each module is a paper and has PAPER (its name and reference) and EXPERIMENTS. A number is computed
from the paper's own parameters with models.py; where it does not come out the row says why.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

MATCHES, DEVIATES, IMPOSSIBLE, NOT_RUN, OURS = (
    "matches", "deviates", "impossible", "not run", "ours",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Row:
    """One number.

    Attributes:
        what: it is, with its unit.
        paper: what is printed; None: the paper does not give it.
        ours: what comes out; None: it cannot be computed, or was not.
        tolerance: relative deviation up to which the numbers are the same: the printed digits.
        reason: why it deviates, cannot be had, or what to give.
        needs_data: without files of the user, or a simulation, ours is None.
    """

    what: str
    paper: float | None
    ours: float | None
    tolerance: float = 0.005
    reason: str = ""
    needs_data: bool = False

    @property
    def deviation(self) -> float | None:
        """Relative, signed; None where there is nothing to compare."""
        if self.paper is None or self.ours is None:
            return None
        if self.paper == 0:
            return 0.0 if self.ours == 0 else math.inf
        return self.ours / self.paper - 1

    @property
    def status(self) -> str:
        if self.ours is None:
            return NOT_RUN if self.needs_data else IMPOSSIBLE
        if self.deviation is None:
            return OURS
        return MATCHES if abs(self.deviation) <= self.tolerance else DEVIATES


@dataclasses.dataclass
class Result:
    """What an experiment found; `curves` is what its figure draws."""

    rows: list[Row]
    notes: list[str] = dataclasses.field(default_factory=list)
    curves: Any = None


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or figure. `cls`: R1 checkable on any CPU, R2 computable or simulated, R3 needs the
    authors' hardware, R4 their data, R5 a training."""

    id: str
    item: str
    title: str
    cls: str
    run: Callable[[Data], Result]
    draw: Callable[[Any, Result], None] | None = None  # onto a matplotlib figure


@dataclasses.dataclass(frozen=True)
class Data:
    """The user's files, if any, and whether experiments may simulate (seconds each)."""

    folder: Path | None = None
    simulate: bool = False

    def find(self, name: str) -> bytes | None:
        """The file of that name, or of that name with .zst or .gz; None where there is none."""
        if self.folder is None:
            return None
        for suffix in ("", ".zst", ".gz"):
            path = self.folder / (name + suffix)
            if path.is_file():
                return _expanded(path.read_bytes(), suffix)
        return None


def _expanded(content: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        import gzip

        return gzip.decompress(content)
    if suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise ImportError(
                "a .zst file needs the package zstandard, or expand it before"
            ) from None
        return zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return content


@dataclasses.dataclass(frozen=True)
class Paper:
    """Its short name, which ids begin with, and the reference."""

    name: str
    reference: str
