# SPDX-License-Identifier: Apache-2.0
"""Messages of any size between the ranks of a process group."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

import torch
import torch.distributed as dist

# The group's own methods and not the functions of torch.distributed, which know registered groups
# only; by the names that this PyTorch has for them.


def all_gather_into(out: torch.Tensor, tensor: torch.Tensor, group: dist.ProcessGroup) -> None:
    """`all_gather_into_tensor`."""
    gather = getattr(group, "all_gather_single", None) or group._allgather_base
    gather(out, tensor).wait()


def all_to_all_into(
    out: torch.Tensor,
    tensor: torch.Tensor,
    coming: Sequence[int],
    going: Sequence[int],
    group: dist.ProcessGroup,
) -> None:
    """`all_to_all_single` of so many elements from and to each rank."""
    exchange = getattr(group, "all_to_all_single", None) or group.alltoall_base
    exchange(out, tensor, list(coming), list(going)).wait()


def all_reduce_in(
    tensor: torch.Tensor, group: dist.ProcessGroup, operation: Any = dist.ReduceOp.SUM
) -> None:
    """`all_reduce`."""
    group.allreduce([tensor], operation).wait()


class _Memory:
    """Memory of a tensor, in NumPy's protocol; the array keeps this and so the tensor."""

    def __init__(self, tensor: torch.Tensor, kind: str) -> None:
        self._tensor = tensor
        self.__array_interface__ = {
            "data": (tensor.data_ptr(), False),
            "shape": (tensor.numel(),),
            "typestr": kind,
            "version": 3,
        }


_KINDS = {
    torch.uint8: "|u1",
    torch.int8: "|i1",
    torch.int16: "<i2",
    torch.int32: "<i4",
    torch.int64: "<i8",
    torch.float16: "<f2",
    torch.float32: "<f4",
    torch.float64: "<f8",
}


def as_array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The memory of a contiguous tensor of the CPU, as a NumPy array of one dimension.

    `Tensor.numpy` gives the same, but then the tensor's storage can never be resized again, which
    FSDP and others do with theirs.
    """
    if not tensor.is_contiguous():
        raise ValueError("the tensor is not contiguous")
    kind = _KINDS[tensor.dtype]
    return np.asarray(_Memory(tensor, kind)) if tensor.numel() else np.empty(0, kind)


PIECE = 1 << 20  # bytes


class Post:
    """Sends bytes between the ranks of `group`, in CPU memory; one call at a time.

    Every call first tells all ranks how much comes, and a number of the caller's (`flags`): one
    round trip, and nobody has to guess. `sent` counts the bytes that left this rank. `close` takes
    down the group if it `owns` it.
    """

    def __init__(self, group: dist.ProcessGroup, owns: bool = False) -> None:
        self.group = group
        self._owns = owns
        self.rank = group.rank()
        self.size = group.size()
        self.sent = 0

    def close(self) -> None:
        """No more messages."""
        # torch.distributed may have taken it down already, with all others.
        if self._owns and self.group in dist.distributed_c10d._world.pg_map:
            dist.destroy_process_group(self.group)
        self._owns = False

    def _announce(self, row: Sequence[int]) -> torch.Tensor:
        """The rows of all ranks, by rank."""
        rows = torch.empty(self.size * len(row), dtype=torch.int64)
        all_gather_into(rows, torch.tensor(row, dtype=torch.int64), self.group)
        self.sent += 8 * len(row) * (self.size - 1)
        return rows.view(self.size, -1)

    def all_reduce(self, tensor: torch.Tensor) -> None:
        """Sums `tensor` over the ranks, in place."""
        dist.all_reduce(tensor, group=self.group)
        self.sent += 2 * tensor.nbytes * (self.size - 1) // self.size

    def all_to_all(
        self, message: torch.Tensor, sizes: Sequence[int], flags: int = 0
    ) -> tuple[list[torch.Tensor], list[int]]:
        """Sends `message` (uint8), cut into parts of `sizes` bytes, a part to every rank.

        Returns the parts that came and the flags of all, both by rank.
        """
        rows = self._announce([*sizes, flags])
        inbox = torch.empty(int(rows[:, self.rank].sum()), dtype=torch.uint8)
        came = inbox.split(rows[:, self.rank].tolist())
        parts = message.split([*sizes, message.numel() - sum(sizes)])
        self._exchange(parts, came)
        came[self.rank].copy_(parts[self.rank])
        self.sent += sum(sizes) - sizes[self.rank]
        return list(came), rows[:, -1].tolist()

    def all_gather(
        self, message: torch.Tensor, flags: int = 0
    ) -> tuple[list[torch.Tensor], list[int]]:
        """Sends `message` (uint8) to every rank; returns all messages and flags, by rank."""
        rows = self._announce([message.numel(), flags])
        sizes = rows[:, 0].tolist()
        sizes[self.rank] = 0
        got = list(torch.empty(sum(sizes), dtype=torch.uint8).split(sizes))
        self._exchange([message] * self.size, got)
        got[self.rank] = message
        self.sent += message.numel() * (self.size - 1)
        return got, rows[:, -1].tolist()

    def _exchange(self, going: Sequence[torch.Tensor], coming: Sequence[torch.Tensor]) -> None:
        """Sends a part to every other rank and receives one, of known sizes.

        In pieces: gloo sends or receives one large message at a time on a connection, but both
        directions carry smaller ones at once, which takes half the time.
        """
        works = []
        for step in range(1, self.size):
            to, source = (self.rank + step) % self.size, (self.rank - step) % self.size
            for tag, piece in enumerate(coming[source].split(PIECE)):
                if piece.numel():
                    works.append(self.group.recv([piece], source, tag))
            for tag, piece in enumerate(going[to].split(PIECE)):
                if piece.numel():
                    works.append(self.group.send([piece], to, tag))
        for work in works:
            work.wait()


def open_post(parts: Sequence[Sequence[int]], timeout: timedelta | None = None) -> Post:
    """A gloo group of that part (ranks of the program) which holds this rank; a collective call of
    all ranks of all parts."""
    me, made = dist.get_rank(), None
    # Groups that all ranks make together are numbered. Others get a name that PyTorch may give
    # again once such a group is gone, and then finds the old one's addresses: they stay.
    together = sum(len(part) for part in parts) == dist.get_world_size()
    for part in parts:
        if together or me in part:
            group = dist.new_group(
                list(part),
                backend="gloo",
                timeout=timeout,
                use_local_synchronization=not together,
            )
            made = group if me in part else made
    assert made is not None
    return Post(made, owns=together)
