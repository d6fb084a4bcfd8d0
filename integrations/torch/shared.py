# SPDX-License-Identifier: Apache-2.0
"""Memory that the ranks of a host share, so that a sum over them costs no network."""

from __future__ import annotations

import contextlib
import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch.multiprocessing import reductions
from wirepress.torch.transport import Post, all_gather_into, all_reduce_in

_FOLDER = "/dev/shm"  # a file system in memory


class Rooms:
    """A room of `n_values` float32 for every rank of `post`, which share a host: in memory of the
    CPU, or (`there`) of CUDA devices, each rank's on its own.

    In turns: each rank writes to its own room, waits for all, then reads any. Rooms are there
    twice, so the next writing needs no second wait: who has passed one knows that all have read
    what was written for the turn before.
    """

    def __init__(
        self, post: Post, maps: Sequence[torch.Tensor], n_values: int, there: bool
    ) -> None:
        self._post, self._maps, self._n = post, maps, n_values
        self._turn = 0
        self.n_ranks, self.there = post.size, there

    def values(self, rank: int) -> torch.Tensor:
        """The room of a rank in this turn, as float32."""
        return self._maps[rank][self._turn * self._n :][: self._n]

    def wait(self, flag: int = 0) -> list[int]:
        """Until all ranks have written; returns the flags of all, by rank."""
        self._settle()
        flags = torch.empty(self.n_ranks, dtype=torch.int64, device="cpu")
        all_gather_into(flags, torch.tensor([flag], device="cpu"), self._post.group)
        return flags.tolist()

    def next_turn(self) -> None:
        """This rank has read what it wants."""
        self._settle()
        self._turn ^= 1

    def _settle(self) -> None:
        """Other processes see what this one has put on its stream when it is done."""
        if self._maps[0].is_cuda:
            torch.cuda.current_stream(self._maps[0].device).synchronize()


def open_rooms(post: Post, n_values: int) -> Rooms | None:
    """Rooms in memory of the CPU. A collective call; None on all ranks where there can be none (no
    /dev/shm, not enough of it, or the ranks see different ones)."""
    size = 8 * n_values
    own = _create(size)
    names: list[str] = Post(post.group).all_gather_object(own)  # counted nowhere
    maps = _agreed(post, [_open(name, size) for name in names] if all(names) else [])
    if own:
        os.unlink(own)  # the memory goes with the last map
    return Rooms(post, maps, n_values, False) if maps else None


# Among the arguments of reductions.rebuild_cuda_tensor: the device, and, last, whether to wait for
# an event of the other one. Nothing has been written yet.
_DEVICE = 6


def open_there(post: Post, n_values: int, device: torch.device) -> Rooms | None:
    """Rooms on the ranks' CUDA devices, by CUDA's handles between processes. A collective call;
    None on all ranks where one of them cannot reach all (devices without peer access, an allocator
    whose memory has no handles)."""
    own, handle = None, None
    with contextlib.suppress(RuntimeError):
        own = torch.empty(2 * n_values, device=device, dtype=torch.float32)
        handle = reductions.reduce_tensor(own)
    handles = Post(post.group).all_gather_object(handle)
    maps: list[Any] = []
    with contextlib.suppress(RuntimeError):
        for rank, (rebuild, args) in enumerate(handles if all(handles) else []):
            # Opened on this rank's device, whose kernels read it where it lies: opened on its own,
            # it would cost a context there.
            there = (*args[:_DEVICE], device.index, *args[_DEVICE + 1 : -1], False)
            maps.append(own if rank == post.rank else rebuild(*there))
    maps = _agreed(post, maps)
    return Rooms(post, maps, n_values, True) if maps else None


def _agreed(post: Post, maps: list[Any]) -> list[torch.Tensor]:
    """The rooms of all ranks, if each rank has all of them; else none."""
    all_there = len(maps) == post.size and all(room is not None for room in maps)
    fits = torch.tensor([int(all_there)], device="cpu")
    all_reduce_in(fits, post.group, dist.ReduceOp.MIN)
    return maps if fits else []


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
        return torch.frombuffer(mmap.mmap(file.fileno(), size), dtype=torch.float32)
    return None
