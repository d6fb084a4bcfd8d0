# SPDX-License-Identifier: Apache-2.0
"""A file as frames in a row, each with the type of what it holds (spec/series.md)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from wirepress import _core, api
from wirepress.commands.paths import write_all
from wirepress.errors import ChecksumError, CorruptError, TruncatedError, UnsupportedError

HEAD = b"WPS\x10"
_END = b"WPE\x10"
_END_FORM = struct.Struct("<4sQQI")  # n_frames, raw size, CRC-32 of what stands before it
END_SIZE = _END_FORM.size
_PIECE = 1 << 20  # bytes expanded at a time
_OTHERS = {
    b"WPTb": "a file of a trace: wirepress trace show FOLDER reads them",
    b"WPT": "a .wps file: wirepress convert turns it back into a .safetensors file",
    b"WPU": "a patch: wirepress patch BASE PATCH -o FILE applies it",
    b"WPD": "tensors of a checkpoint: wirepress.torch.CheckpointReader reads its folder",
    b"WPM": "the table of a checkpoint: wirepress.torch.CheckpointReader reads its folder",
    b"WPRSTORE": "a frame store: wirepress store ls FILE lists its frames",
}
"""First bytes of other formats, and what to say of them; the longer of two stands first."""


def end_record(n_frames: int, raw_size: int) -> bytes:
    """What follows the last frame."""
    record = _END_FORM.pack(_END, n_frames, raw_size, 0)[:-4]
    return record + struct.pack("<I", zlib.crc32(record))


def check_head(head: bytes) -> None:
    """Raises UnsupportedError for a series of another version."""
    if head[3:4] != HEAD[3:]:
        raise UnsupportedError(f"version {head[3] >> 4} of a series; this library knows 1")


def refuse_others(head: bytes) -> None:
    """Raises UnsupportedError for the first bytes of a file that wirepress writes elsewhere."""
    for magic, what in _OTHERS.items():
        if head.startswith(magic):
            raise UnsupportedError(f"this is {what}")


def check_end(record: bytes, n_frames: int, raw_size: int) -> None:
    """Raises FrameError where the end of a series is not that of these frames."""
    if len(record) < END_SIZE:
        raise TruncatedError(f"the series ends after {n_frames} frames, before its end record")
    magic, frames, size, crc = _END_FORM.unpack(record)
    if magic[:3] != _END[:3]:
        raise CorruptError(f"frame {n_frames} of the series: neither a frame nor the end record")
    check_head(magic)
    if crc != zlib.crc32(record[:-4]):
        raise ChecksumError("the end record of the series is damaged")
    if (frames, size) != (n_frames, raw_size):
        raise CorruptError(
            f"the series holds {n_frames} frames of {raw_size} bytes; its end record says "
            f"{frames} of {size}"
        )


class Window:
    """Bytes that come in pieces, as they are needed."""

    def __init__(self, pieces: Iterator[memoryview]) -> None:
        self._pieces, self._piece, self.taken = pieces, memoryview(b""), 0

    def more(self, size: int) -> memoryview:
        """The bytes at hand: at least `size`, or all that are left."""
        while len(self._piece) < size:
            rest = bytes(self._piece)  # the next piece may come in the same memory
            piece = next(self._pieces, None)
            if piece is None:
                return memoryview(rest)
            self._piece = memoryview(rest + bytes(piece)) if rest else piece
        return self._piece

    def take(self, size: int) -> None:
        self._piece = self._piece[size:]
        self.taken += size


class Expander:
    """Writes what a frame or a series expands to; counts both."""

    def __init__(
        self, pieces: Iterator[memoryview], target: BinaryIO, options: dict[str, Any]
    ) -> None:
        self._window, self._target, self._options = Window(pieces), target, options
        self._out = memoryview(bytearray(_PIECE))
        self.infos: list[api.Info] = []
        self.sizes: list[int] = []
        self.n_written = 0
        head = bytes(self._window.more(_core.MAX_HEADER)[: _core.MAX_HEADER])
        if not head:
            raise TruncatedError("the input is empty")
        self.is_series = head[:3] == HEAD[:3]
        if self.is_series:
            check_head(head.ljust(4, b"\0"))
            self._window.take(len(HEAD))
        else:
            refuse_others(head)
            self.infos.append(api.inspect(head))

    @property
    def n_taken(self) -> int:
        return self._window.taken

    def run(self) -> None:
        """Expands all of it; raises FrameError where it is damaged or more follows."""
        if not self.is_series:
            self._frame()
            if self._window.more(1):
                raise CorruptError(f"there are bytes after the end of the frame, at {self.n_taken}")
            return
        while self._window.more(3)[:3] == b"WPR":
            head = self._window.more(_core.MAX_HEADER)[: _core.MAX_HEADER]
            self.infos.append(api.inspect(bytes(head)))
            self._frame()
        record = bytes(self._window.more(END_SIZE)[:END_SIZE])
        check_end(record, len(self.infos), self.n_written)
        self._window.take(len(record))
        if self._window.more(1):
            raise CorruptError(f"there are bytes after the end of the series, at {self.n_taken}")

    def _frame(self) -> None:
        stream = api.StreamDecompressor(**self._options)
        written, before = len(self._out), self.n_written
        while not stream.done:
            piece = self._window.more(1)
            if not piece and written < len(self._out):
                raise TruncatedError(
                    f"the frame ends after {self.n_taken} bytes, before its content does"
                )
            consumed, written = stream.update_into(piece, 0, self._out)
            self._window.take(consumed)
            self.n_written += written
            write_all(self._target, self._out[:written])
        self.sizes.append(self.n_written - before)


class Writer:
    """Writes a series, frame by frame."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.n_frames = self.raw_size = 0
        self.size = len(HEAD) + END_SIZE
        write_all(target, HEAD)

    def add_piece(self, piece: bytes) -> None:
        """A piece of a frame; `end_frame` follows the last."""
        write_all(self._target, piece)
        self.size += len(piece)

    def end_frame(self, raw_size: int) -> None:
        self.n_frames += 1
        self.raw_size += raw_size

    def finish(self) -> None:
        write_all(self._target, end_record(self.n_frames, self.raw_size))
