# SPDX-License-Identifier: Apache-2.0
"""Operations under way, as PyTorch waits for them, and the thread that does them in order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from wirepress.errors import ParameterError
from wirepress.torch.memory import Pairs, copy_back, on_device


class Work(dist.Work):
    """An operation that the group's thread does; `wait` raises what went wrong."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result = result
        self._done = threading.Event()
        self._error: Exception | None = None
        self._ready: torch.futures.Future[None] = torch.futures.Future(
            devices=_cuda_devices(result)
        )

    def _outcome(self, _: torch.futures.Future[None]) -> Any:
        if self._error is not None:
            raise self._error
        return self._result

    def finish(self, error: Exception | None) -> None:
        self._error = error
        self._done.set()
        self._ready.set_result(None)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        seconds = timeout.total_seconds()
        if not self._done.wait(seconds if seconds > 0 else None):
            raise RuntimeError(f"wirepress: no result after {seconds:g} s")
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        return self._done.is_set()

    def is_success(self) -> bool:
        return self._done.is_set() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> Any:
        return self._result

    def get_future(self) -> torch.futures.Future[Any]:
        """Its error is PyTorch's RuntimeError, whose text has the type and text of ours: what
        `set_exception` gives is a result for C++, and DDP waits there."""
        return self._ready.then(self._outcome)


class Works(dist.Work):
    """Several operations as one."""

    def __init__(self, works: Sequence[dist.Work], result: Any) -> None:
        super().__init__()
        self._works, self._result = works, result

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        for work in self._works:
            work.wait(timeout) if timeout else work.wait()
        return True

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> Any:
        return next(filter(None, (work.exception() for work in self._works)), None)

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> Any:
        return self._result

    def get_future(self) -> torch.futures.Future[Any]:
        done = torch.futures.collect_all([work.get_future() for work in self._works])
        devices = _cuda_devices(self._result)
        if devices is None:
            return done.then(self._outcome)
        made: torch.futures.Future[Any] = torch.futures.Future(devices=devices)

        outcome: list[Any] = []

        def settle(done: torch.futures.Future[Any]) -> None:
            try:
                outcome.append(self._outcome(done))
            finally:  # what fails is raised again by then(), as in Work.get_future
                made.set_result(None)

        done.add_done_callback(settle)
        return made.then(lambda _: outcome[0] if outcome else self._outcome(done))

    def _outcome(self, done: torch.futures.Future[Any]) -> Any:
        for each in done.value():  # raises where one of them failed
            each.value()
        return self._result


class CopiedBack(Works):
    """A raw operation on rooms, whose tensors get the result when somebody waits for it."""

    def __init__(self, work: dist.Work, result: Any, copies: Pairs) -> None:
        super().__init__([work], result)
        self._copies = copies
        self._once = threading.Lock()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        super().wait(timeout)
        self._copy()
        return True

    def is_completed(self) -> bool:
        done = super().is_completed()
        if done and super().is_success():
            self._copy()
        return done

    def _source_rank(self) -> int:
        return self._works[0]._source_rank()

    def _outcome(self, done: torch.futures.Future[Any]) -> Any:
        result = super()._outcome(done)
        self._copy()
        return result

    def _copy(self) -> None:
        with self._once:
            copy_back(self._copies)
            self._copies = []


class Staged:
    """A gloo group for tensors of a device, which gloo does not have: its methods work on copies in
    memory of the CPU, and the first thing that they are given gets the results."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._group, name)
        return lambda first, *others: self._call(method, first, others, results=name != "send")

    def _call(self, method: Any, first: Any, others: Sequence[Any], results: bool) -> dist.Work:
        pairs: list[tuple[torch.Tensor, torch.Tensor]] = []
        given = _on_cpu(first, pairs)
        n_results = len(pairs) if results else 0
        work = method(given, *(_on_cpu(other, pairs) for other in others))
        return CopiedBack(work, first, pairs[:n_results])


def _on_cpu(value: Any, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """The value with copies of the tensors of devices in it, which are noted beside these."""
    if isinstance(value, (list, tuple)):
        return [_on_cpu(each, pairs) for each in value]
    if not isinstance(value, torch.Tensor) or not on_device(value):
        return value
    copy = torch.empty_like(value, device="cpu").copy_(value)
    pairs.append((copy, value))
    return copy


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """Those in lists of lists."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)


def _cuda_devices(value: Any) -> list[torch.device] | None:
    """What PyTorch's futures of such a value are told; None: it is of the CPU."""
    return sorted({t.device for t in _tensors(value) if t.is_cuda}, key=str) or None


def has_device(*values: Any) -> bool:
    """Whether a tensor of a device is among the values, or in lists of them."""
    return any(map(on_device, _tensors(values)))


def behind(tensors: Any, streams: dict[torch.device, Any], run: Callable[[], None]) -> Any:
    """`run` on a stream of the group's thread for such tensors, behind what the caller has put on
    its own so far. When it ends, what it put there is done."""
    devices = _cuda_devices(tensors)
    if devices is None:
        return run
    device = devices[0]
    ready = torch.cuda.current_stream(device).record_event()
    if device not in streams:
        streams[device] = torch.cuda.Stream(device)
    side = streams[device]

    def on_side() -> None:
        # From then on: what `finish` records, nothing else is behind.
        torch.cuda.set_device(device)
        torch.cuda.set_stream(side)
        side.wait_event(ready)
        try:
            run()
        finally:
            side.synchronize()

    return on_side


class Jobs:
    """What waits for the thread of a group, and what it is at."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.left = 0
        self.failed: Exception | None = None
        """What all later jobs end with: after half an exchange nothing fits any more."""

    def put(self, work: Work, run: Callable[[], None]) -> None:
        """With the lock held."""
        self.left += 1
        self.queue.put((work, run))

    @property
    def idle(self) -> bool:
        return not self.left and self.failed is None


def serve(jobs: Jobs) -> None:
    """The thread of a group. It knows the jobs only, so that a forgotten group can go."""
    while (job := jobs.queue.get()) is not None:
        work, run = job
        error = jobs.failed
        if error is None:
            try:
                with torch.inference_mode():  # results are written to whatever tensors the user has
                    run()
            except Exception as caught:
                error = caught
                if not isinstance(caught, ParameterError):
                    jobs.failed = caught
        with jobs.lock:
            jobs.left -= 1
        work.finish(error)
        del job, work, run, error
