# SPDX-License-Identifier: Apache-2.0
"""Messages of any size between the ranks of a process group."""

from __future__ import annotations

from collections.abc import Sequence

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


class Post:
    """Sends bytes between the ranks of `group`, in CPU memory; one call at a time.

    Every call first tells all ranks how much comes, and a number of the caller's (`flags`): one
    round trip, and nobody has to guess. `sent` counts the bytes that left this rank.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.rank = group.rank()
        self.size = group.size()
        self.sent = 0

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
        coming = rows[:, self.rank].tolist()
        inbox = torch.empty(sum(coming), dtype=torch.uint8)
        all_to_all_into(inbox, message, coming, sizes, self.group)
        self.sent += sum(sizes) - sizes[self.rank]
        return list(inbox.split(coming)), rows[:, -1].tolist()

    def all_gather(
        self, message: torch.Tensor, flags: int = 0
    ) -> tuple[list[torch.Tensor], list[int]]:
        """Sends `message` (uint8) to every rank; returns all messages and flags, by rank."""
        rows = self._announce([message.numel(), flags])
        sizes = rows[:, 0].tolist()
        if self.size == 1:
            return [message], [flags]
        if max(sizes) * self.size > 1.1 * sum(sizes):  # padding would cost more than copies
            copies = message.repeat(self.size - 1) if self.size > 2 else message
            parts = [0 if rank == self.rank else message.numel() for rank in range(self.size)]
            coming = [0 if rank == self.rank else size for rank, size in enumerate(sizes)]
            inbox = torch.empty(sum(coming), dtype=torch.uint8)
            all_to_all_into(inbox, copies, coming, parts, self.group)
            got = list(inbox.split(coming))
            got[self.rank] = message
        else:
            padded = _padded(message, max(sizes))
            inbox = torch.empty(self.size * max(sizes), dtype=torch.uint8)
            all_gather_into(inbox, padded, self.group)
            rooms = inbox.split(max(sizes)) if max(sizes) else [inbox] * self.size
            got = [room[:size] for room, size in zip(rooms, sizes, strict=True)]
        self.sent += message.numel() * (self.size - 1)
        return got, rows[:, -1].tolist()


def _padded(message: torch.Tensor, size: int) -> torch.Tensor:
    if message.numel() == size:
        return message
    room = torch.zeros(size, dtype=torch.uint8)
    room[: message.numel()] = message
    return room
