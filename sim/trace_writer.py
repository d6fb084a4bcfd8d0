# SPDX-License-Identifier: Apache-2.0
"""Writes a trace (spec/trace.md) from Python, for programs whose calls the interposer does not see.

The interposer's own writer is integrations/mpi/recording/trace_file.cpp.
"""

from __future__ import annotations

import contextlib
import json
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wirepress import api, arrays
from wirepress.sim.trace_reader import PROC_NULL, RECORD, SUFFIX, VERSION, fnv

CALLS = ("tracer", "completion", "MPI_Iallreduce", "MPI_Waitall")


def clock() -> int:
    """Nanoseconds on the clock of traces."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def place() -> dict[str, str]:
    """What a description says of the machine: its name, which containers on it share, and the cores
    that this process may use. "": not known."""
    found = {"machine": "", "cores": ""}
    with contextlib.suppress(OSError):
        found["machine"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        status = Path("/proc/self/status").read_text()
        found["cores"] = status.partition("Cpus_allowed_list:")[2].partition("\n")[0].strip()
    return found


class Samples:
    """Pieces of what is sent, evenly spaced, within `room` bytes; as the interposer keeps them."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.piece = min(max(room // 64, 16 << 10), 256 << 10)
        self.kept: list[tuple[int, int, int, bytes]] = []  # time, stands for, of how many, data
        self._stride, self._since = self.piece, 0

    def wants(self, size: int) -> bool:
        """Of a message of `size` bytes that is sent now."""
        self._since += size
        return self.room > 0 and self._since >= self._stride

    def add(self, at: int, size: int, data: bytes) -> None:
        self.kept.append((at, self._since, size, data))
        self._since = 0
        while sum(len(sample[3]) for sample in self.kept) > self.room:
            pairs = zip(self.kept[::2], self.kept[1::2], strict=False)
            self.kept = [(b[0], a[1] + b[1], b[2], b[3]) for a, b in pairs]
            self._stride *= 2


class Writer:
    """One rank's file. A record has the fields of RECORD, times as of `now`.

    Raises OSError where the file exists or cannot be written. Not for several threads at once.
    """

    def __init__(
        self, folder: str | Path, job: bytes, rank: int, nodes: Sequence[int], about: dict[str, Any]
    ) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.path = Path(folder) / f"{job[:4].hex()}-{rank:05d}{SUFFIX}"
        self._file = self.path.open("xb", buffering=0)
        self._codec = api.Compressor("shuffle:64+lz4", threads=1, checksum=True)
        self._plain = api.Compressor("store", threads=1, checksum=True)
        self._seed = job + struct.pack("<I", rank)
        self._offset = 0
        self._index: list[tuple[int, ...]] = []
        self._origin = clock()
        self.n_records = 0
        head = struct.pack("<8sII16sIIQQ", b"WPRTRACE", VERSION, RECORD.itemsize, job,
                           rank, len(nodes), time.time_ns(), self._origin)  # fmt: skip
        self._write(head + struct.pack("<Q", fnv(head)))
        meta = {"nodes": list(nodes), "multiple": False, "codec": None, "sample_bytes": 0}
        meta |= {"calls": list(CALLS), "dtypes": list(arrays.DTYPES)}
        meta |= place() | about
        self._block(1, json.dumps(meta).encode(), 1, codec=self._codec)
        members = [1, rank, len(nodes), 0, *range(len(nodes))]
        self._block(3, struct.pack(f"<{len(members)}i", *members), 1)

    def now(self) -> int:
        """Nanoseconds since the file's origin."""
        return clock() - self._origin

    def records(self, rows: Sequence[dict[str, int]]) -> None:
        """A block of them. Fields that are not given are 0, the peer none."""
        if not rows:
            return
        array = np.zeros(len(rows), RECORD)
        array["peer"] = PROC_NULL
        for record, row in zip(array, rows, strict=True):
            for key, value in row.items():
                record[key] = value
        span = int(array["begin"].min()), int(array["end"].max())
        self._block(2, array.tobytes(), len(rows), *span, codec=self._codec)
        self.n_records += len(rows)

    def sample(
        self, at: int, stands_for: int, size: int, call: int, dtype: int, data: bytes
    ) -> None:
        head = struct.pack("<QQQIBB2x", at, stands_for, size, 0, call, dtype)
        self._block(4, head + data, 1, at, at)

    def clocks(self, difference: int, error: int, n: int) -> None:
        """What is to be added to this clock to have rank 0's, and what that may be off by."""
        self._block(5, struct.pack("<QqQII", self.now(), difference, error, n, 0), 1)

    def close(self) -> None:
        if self._file.closed:
            return
        entries = b"".join(struct.pack("<QHHIQQ", *entry) for entry in self._index)
        trailer = struct.pack("<8sQ", b"WPTINDEX", self._offset)
        self._block(6, entries, len(self._index))
        self._write(trailer + self._seal(trailer))
        self._file.close()

    def _seal(self, data: bytes) -> bytes:
        return struct.pack("<Q", fnv(self._seed + data))

    def _block(
        self, kind: int, payload: bytes, n: int, first: int = 0, last: int = 0, codec: Any = None
    ) -> None:
        frame = bytes((codec or self._plain).compress(payload))
        head = struct.pack("<4sHHIIIIQQQQ", b"WPTb", kind, 0, len(self._index), len(frame), n, 0,
                           first, last, len(payload), self._offset)  # fmt: skip
        self._index.append((self._offset, kind, 0, n, first, last))
        self._write(head + self._seal(head) + frame)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        self._offset += len(view)
        while view:
            view = view[self._file.write(view) :]
