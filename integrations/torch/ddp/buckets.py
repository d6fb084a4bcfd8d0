# SPDX-License-Identifier: Apache-2.0
"""Buckets of DistributedDataParallel, and the backward pass that they belong to."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from wirepress.torch import memory
from wirepress.torch.memory import stays as stays


class Step:
    """The buckets of one backward pass: what is still on its way, and what went wrong.

    Args:
        divisor: the ranks that sums of gradients are divided by.
    """

    def __init__(self, divisor: int = 1) -> None:
        self.divisor = divisor
        self._lock = threading.Lock()
        self._n_left, self._all_there = 0, False
        self.lost = False  # a gradient was not finite, and the step is skipped
        self.error: BaseException | None = None  # the first

    def add(self, last: bool) -> None:
        with self._lock:
            self._n_left += 1
            self._all_there = last

    def finish_one(self) -> bool:
        """Whether that was the last bucket."""
        with self._lock:
            self._n_left -= 1
            return self._all_there and not self._n_left

    def close(self) -> bool:
        """No bucket comes any more. Whether that makes the last one that was finished the last."""
        with self._lock:
            was, self._all_there = self._all_there, True
            return not was and not self._n_left

    def note(self, error: BaseException) -> None:
        with self._lock:
            self.error = self.error or error

    def check(self) -> None:
        """Raises what went wrong, once."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def n_bytes(buffer: torch.Tensor) -> int:
    return buffer._indices().nbytes + buffer._values().nbytes if buffer.is_sparse else buffer.nbytes


def is_finite(sums: torch.Tensor) -> bool:
    return memory.all_finite(sums._values() if sums.is_sparse else sums)


def divides_by_those_with_data(model: DistributedDataParallel | None) -> bool:
    """Whether the model is in a `join` with `divide_by_initial_world_size=False`. PyTorch keeps
    that from hooks, and divides itself only where there is none."""
    config = getattr(model, "_join_config", None)
    if config is None or not (config.enable and config.is_first_joinable):
        return False
    return not getattr(model, "_divide_by_initial_world_size", True)


def after_backward(check: Callable[[], None]) -> None:
    """Calls `check` at the end of the backward pass, after DDP is done with it: what that raises
    comes out of `backward` as it is. (Of an error of a future DDP keeps neither type nor text.)

    Called from the hook for the last bucket, after which DDP queues the end of its own work; so
    that a callback that this one queues comes after it.
    """
    queue = torch.autograd.Variable._execution_engine.queue_callback
    queue(lambda: queue(check))


@dataclasses.dataclass
class Place:
    """Where a bucket is worked on: its values, what brings them back, and what threads enter that
    work on them."""

    values: torch.Tensor
    fetch: Callable[[], None]
    scope: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


class Streams:
    """A stream for each bucket, beside that of the backward pass, which waits for nothing: with one
    for all, the first bucket would wait for the gradients of the last."""

    def __init__(self) -> None:
        self._streams: dict[tuple[torch.device, int], torch.cuda.Stream] = {}

    def place(self, buffer: torch.Tensor, number: int) -> Place:
        """The bucket of that number on its device; its own memory where that is float32."""
        side = self._streams.get((buffer.device, number))
        if side is None:
            side = self._streams[buffer.device, number] = torch.cuda.Stream(buffer.device)
        side.wait_stream(torch.cuda.current_stream(buffer.device))
        scope = functools.partial(memory.on_stream, side)
        if buffer.dtype == torch.float32:
            return Place(buffer, lambda: None, scope)
        with scope():
            values = buffer.to(torch.float32)

        def fetch() -> None:
            buffer.copy_(values)

        return Place(values, fetch, scope)


def on_host(buffer: torch.Tensor, *, halves: bool = False) -> Place:
    """The bucket as float32 in CPU memory; the bucket itself where it is that already, or where
    16 bits may stay (`halves`). A copy from a device is waited for here, which the backward pass on
    it is not."""
    stays = buffer.dtype == torch.float32 or (halves and buffer.dtype in memory.HALVES)
    if stays and buffer.device.type == "cpu":
        return Place(buffer, lambda: None)
    host = torch.empty(buffer.shape, dtype=torch.float32, device="cpu", pin_memory=buffer.is_cuda)
    host.copy_(buffer)

    def fetch() -> None:
        buffer.copy_(host)
        if buffer.is_cuda:
            torch.cuda.current_stream(buffer.device).synchronize()

    return Place(host, fetch)
