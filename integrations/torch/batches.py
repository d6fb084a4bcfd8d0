# SPDX-License-Identifier: Apache-2.0
"""Pieces that a device codes, expands or copies as one job, which takes as many launches and copies
as one piece does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol


class JobOfPieces(Protocol):
    """As `wirepress.Job` of several pieces."""

    def result(self) -> list[int]:
        """Waits for it; returns the pieces' sizes."""


BeginJob = Callable[[list[Any], int | None], JobOfPieces]
"""Begins a job of pieces, on a stream."""


class Batches:
    """What a thread puts in, one piece after the other, goes on together: a job begins when
    somebody waits for one of its pieces, or when a piece of another kind or stream comes."""

    def __init__(self) -> None:
        self._threads = threading.local()

    def close(self) -> None:
        """Lets go of the jobs, which hold the library's objects."""
        self._threads = threading.local()

    def add(self, kind: Any, stream: int | None, begin: BeginJob, piece: Any) -> InBatch:
        """A piece that `begin` takes beside others of its kind."""
        batch = getattr(self._threads, "batch", None)
        if batch is None or batch.job is not None or (batch.kind, batch.stream) != (kind, stream):
            if batch is not None:
                batch.begin()
            batch = self._threads.batch = _Batch(kind, stream, begin)
        return batch.add(piece)


class _Batch:
    def __init__(self, kind: Any, stream: int | None, begin: BeginJob) -> None:
        self.kind, self.stream, self._begin = kind, stream, begin
        self._pieces: list[Any] = []
        self.job: JobOfPieces | None = None

    def add(self, piece: Any) -> InBatch:
        self._pieces.append(piece)
        return InBatch(self, len(self._pieces) - 1)

    def begin(self) -> JobOfPieces:
        if self.job is None:
            self.job = self._begin(self._pieces, self.stream)
            self._pieces = []  # which are the job's
        return self.job


class InBatch:
    """A piece of a job, as `wirepress.Job`."""

    def __init__(self, batch: _Batch, number: int) -> None:
        self._batch, self._number = batch, number

    def result(self) -> int:
        """Waits for the job; returns what it says of this piece."""
        return self._batch.begin().result()[self._number]
