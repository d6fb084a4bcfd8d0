# SPDX-License-Identifier: Apache-2.0
"""A pipeline of threads: while one part of a bucket is encoded, another is on the wire.

Every stage is one thread that takes jobs in the order in which they were submitted. So each process
group sees its collectives in the same order on every rank, whatever the threads' luck, as long as
all ranks submit the same jobs in the same order.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import wirepress

_PATIENCE = 2.0  # seconds for a thread to end


class Job:
    """Work with a method for each stage it takes part in, named as the stage.

    `scope` is entered by the stage's thread around it: a CUDA stream of the job's.
    """

    scope: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext

    def done(self, error: BaseException | None) -> None:
        """Called after the last stage, or after the stage that failed."""


class Stages:
    """Runs jobs through the stages `names`, each a thread.

    After a failure the ranks may no longer agree on what comes next: all later jobs fail at once,
    with the same error. `seconds` counts the time that each stage worked, `work` what devices did
    in its thread, and the cores in their place.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.seconds = dict.fromkeys(names, 0.0)
        self.work: dict[str, wirepress.DeviceWork] = {}
        self._queues: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in names]
        self._failed: list[BaseException] = []
        outboxes = [*self._queues[1:], None]
        threads = [
            threading.Thread(
                target=_work,
                args=(name, inbox, outbox, self.seconds, self.work, self._failed),
                name=f"wirepress {name}",
                daemon=True,
            )
            for name, inbox, outbox in zip(names, self._queues, outboxes, strict=True)
        ]
        for thread in threads:
            thread.start()
        self._end = weakref.finalize(self, _end, self._queues[0], threads)

    def submit(self, job: Job) -> None:
        self._queues[0].put(job)

    def close(self) -> None:
        """Ends the threads, after the jobs that were submitted."""
        self._end()


def _end(inbox: queue.SimpleQueue[Any], threads: list[threading.Thread]) -> None:
    """Ends the threads, one after the other; at exit, too, for one that comes back from a library
    into an interpreter that is gone would abort the program. One that waits for a dead rank is
    left behind."""
    inbox.put(None)
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(_PATIENCE)


def _work(
    name: str,
    inbox: queue.SimpleQueue[Any],
    outbox: queue.SimpleQueue[Any] | None,
    seconds: dict[str, float],
    work: dict[str, wirepress.DeviceWork],
    failed: list[BaseException],
) -> None:
    while (job := inbox.get()) is not None:
        start = time.perf_counter()
        error = _take_part(job, name, failed)
        seconds[name] += time.perf_counter() - start
        work[name] = wirepress.device_work()
        if error is not None or outbox is None:
            job.done(error)
        else:
            outbox.put(job)
        del job  # its buffers go while this thread waits, and whom it would call
    if outbox is not None:
        outbox.put(None)


def _take_part(job: Job, name: str, failed: list[BaseException]) -> BaseException | None:
    """What ends the job: an earlier failure, or its own."""
    if not failed:
        try:
            with job.scope():
                getattr(job, name, _nothing)()
            return None
        except BaseException as error:
            failed.append(error)
    return failed[0]


def _nothing() -> None:
    """The part of a job in a stage that is not its own."""
