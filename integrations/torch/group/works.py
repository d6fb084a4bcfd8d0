# SPDX-License-Identifier: Apache-2.0
"""Operations under way, as PyTorch waits for them, and the thread that does them in order."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from wirepress.errors import ParameterError
from wirepress.torch.memory import Pairs, copy_back


class Work(dist.Work):
    """An operation that the group's thread does; `wait` raises what went wrong."""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self._result = result
        self._done = threading.Event()
        self._error: Exception | None = None
        self._ready: torch.futures.Future[None] = torch.futures.Future()

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
        return done.then(self._outcome)

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
