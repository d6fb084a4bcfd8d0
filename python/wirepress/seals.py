# SPDX-License-Identifier: Apache-2.0
"""Seals: a CRC of the heads of a frame, which binds the frame to what a file says of it.

The heads are the frame's header and, behind each other, the word and the checksum of every block
(spec/frame.md). A frame that matches its seal has the sizes and checksums that it had when it was
sealed: an intact frame of the same size and type from another place does not match. Heads say where
every block lies, too, so that a few blocks can be read and expanded without the others.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from wirepress import api
from wirepress.errors import CorruptError

_HEAD = struct.Struct("<II")  # of a block: word and checksum
_MOST_HEADER = 64  # bytes of the longest header of a frame
_STORED = (1 << 29) - 1  # bits of a block word that hold the stored size


def seal(heads: Any) -> int:
    """The CRC-32 of heads, that of zip and gzip."""
    return zlib.crc32(heads)


def _checked(info: api.Info) -> tuple[int, int]:
    """The raw size and the number of blocks of a frame that has heads to be sealed."""
    if info.raw_size is None or info.n_blocks is None or not info.checksum:
        raise CorruptError("the frame is streamed, or its blocks carry no checksums")
    if info.n_blocks != -(-info.raw_size // info.block_size):
        raise CorruptError(f"the frame has {info.n_blocks} blocks of {info.block_size} bytes")
    return info.raw_size, info.n_blocks


def heads_of(frame: Any, compressor: api.Compressor) -> bytes:
    """The heads of a whole frame.

    Raises:
        FrameError: the frame does not end where its blocks say.
    """
    info = compressor.inspect(frame[:_MOST_HEADER])
    at, heads = info.header_size, [bytes(frame[: info.header_size])]
    for _ in range(_checked(info)[1]):
        heads.append(bytes(frame[at : at + _HEAD.size]))
        if len(heads[-1]) < _HEAD.size:
            break
        at += _HEAD.size + (_HEAD.unpack(heads[-1])[0] & _STORED)
    if at != len(frame):
        raise CorruptError(f"the frame has {len(frame)} bytes, its blocks say {at}")
    return b"".join(heads)


class Frame(NamedTuple):
    """What the heads of a frame say of it."""

    at: int
    """Where it begins, behind the frames before it."""
    size: int
    begin: int
    """The first byte of the content that it holds; frames before it hold what is before."""
    raw_size: int
    block_size: int
    dtype: str
    heads: bytes
    places: Sequence[int]
    """Where each block begins in the frame, and where the last one ends."""

    @property
    def header_size(self) -> int:
        return self.places[0]

    def covers(self, begin: int, end: int) -> range:
        """The blocks that hold the bytes `begin` to `end` of the frame's content."""
        return range(begin // self.block_size, -(-end // self.block_size))

    def matches(self, memory: Any, blocks: range) -> bool:
        """Whether these blocks of the frame at `memory` have the heads that were sealed."""
        for i in blocks:
            place, head = self.places[i], self.header_size + i * _HEAD.size
            if memory[place : place + _HEAD.size] != self.heads[head : head + _HEAD.size]:
                return False
        return True

    def fill(self, memory: Any) -> None:
        """Writes all heads to `memory`, which has room for the whole frame."""
        memory[: self.header_size] = self.heads[: self.header_size]
        for i, place in enumerate(self.places[:-1]):
            head = self.header_size + i * _HEAD.size
            memory[place : place + _HEAD.size] = self.heads[head : head + _HEAD.size]


def frames_of(heads: bytes, compressor: api.Compressor) -> list[Frame]:
    """The frames in a row whose heads these are.

    Raises:
        FrameError: the heads are damaged, and their seal was not compared.
    """
    found: list[Frame] = []
    at = size = begin = 0
    while at < len(heads):
        info = compressor.inspect(heads[at : at + _MOST_HEADER])
        raw_size, n_blocks = _checked(info)
        first = at + info.header_size
        end = first + n_blocks * _HEAD.size
        if end > len(heads):
            raise CorruptError(f"there are {len(heads)} bytes of heads, the frame says {end}")
        places = [info.header_size]
        for word, _ in _HEAD.iter_unpack(heads[first:end]):
            places.append(places[-1] + _HEAD.size + (word & _STORED))
        found.append(
            Frame(
                size,
                places[-1],
                begin,
                raw_size,
                info.block_size,
                info.dtype,
                heads[at:end],
                places,
            )
        )
        at, size, begin = end, size + places[-1], begin + raw_size
    return found
