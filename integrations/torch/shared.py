# SPDX-License-Identifier: Apache-2.0
"""Memory that the ranks of a host share, so that a sum over them costs no network."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile

import torch
import torch.distributed as dist
from wirepress.torch.transport import Post, all_reduce_in

_FOLDER = "/dev/shm"  # a file system in memory
_HEAD = 8  # bytes of a room before its values: a flag


class Rooms:
    """A room of `n_values` float32 for every rank of `post`, which share a host.

    In turns: each rank writes to its own room, waits for all, then reads any. Rooms are there
    twice, so the next writing needs no second wait: who has passed one knows that all have read
    what was written for the turn before.
    """

    def __init__(self, post: Post, maps: list[torch.Tensor], n_values: int) -> None:
        self._post, self._maps = post, maps
        self._size = _HEAD + 4 * n_values
        self._turn = 0
        self.n_ranks = post.size

    def values(self, rank: int) -> torch.Tensor:
        """The room of a rank in this turn, as float32."""
        return self._room(rank)[_HEAD:].view(torch.float32)

    def flag(self, rank: int) -> int:
        return int(self._room(rank)[:_HEAD].view(torch.int64))

    def set_flag(self, flag: int) -> None:
        self._room(self._post.rank)[:_HEAD].view(torch.int64)[0] = flag

    def wait(self) -> None:
        """Until all ranks have written."""
        all_reduce_in(torch.zeros(1), self._post.group)

    def next_turn(self) -> None:
        self._turn ^= 1

    def _room(self, rank: int) -> torch.Tensor:
        start = self._turn * self._size
        return self._maps[rank][start : start + self._size]


def open_rooms(post: Post, n_values: int) -> Rooms | None:
    """A collective call; None on all ranks where one cannot (no /dev/shm, not enough of it, or the
    ranks see different ones)."""
    size = 2 * (_HEAD + 4 * n_values)
    own = _create(size)
    names: list[str] = Post(post.group).all_gather_object(own)  # counted nowhere
    maps = [_open(name, size) for name in names] if all(names) else []
    fits = torch.tensor([int(bool(maps) and all(room is not None for room in maps))])
    all_reduce_in(fits, post.group, dist.ReduceOp.MIN)
    if own:
        os.unlink(own)  # the memory goes with the last map
    return Rooms(post, [room for room in maps if room is not None], n_values) if fits else None


def _create(size: int) -> str:
    """The name of a new file of so many bytes; "" where there cannot be one."""
    try:
        number, name = tempfile.mkstemp(prefix="wirepress-", dir=_FOLDER)
    except OSError:
        return ""
    try:
        os.posix_fallocate(number, 0, size)  # memory that is not there would end the program later
    except OSError:
        os.unlink(name)
        return ""
    finally:
        os.close(number)
    return name


def _open(name: str, size: int) -> torch.Tensor | None:
    with contextlib.suppress(OSError, ValueError), open(name, "r+b") as file:
        return torch.frombuffer(mmap.mmap(file.fileno(), size), dtype=torch.uint8)
    return None
