# SPDX-License-Identifier: Apache-2.0
"""A pipeline of threads: while one part of a bucket is encoded, another is on the wire.

Every stage is one thread that takes jobs in the order in which they were submitted, but for those
that skip stages. So each process group sees its collectives in the same order on every rank,
whatever the threads' luck, as long as all ranks submit the same jobs in the same order.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import torch
import wirepress

_PATIENCE = 2.0  # seconds for a thread to end


class Job:
    """Work with a method for each stage it takes part in, named as the stage.

    `scope` is entered by the stage's thread around it: a CUDA stream of the job's. It passes by the
    stages that it `skips`; behind them it may meet other jobs in another order than on other ranks.
    """

    scope: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext
    skips: Collection[str] = ()
    label = ""  # in a log

    def done(self, error: BaseException | None) -> None:
        """Called after the last stage, or after the stage that failed."""


class Span(NamedTuple):
    """Something that took time, by `time.perf_counter`."""

    stage: str
    label: str
    begin: float
    end: float


class _Shared:
    """What the threads have in common."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.queues: dict[str, queue.SimpleQueue[Any]] = {n: queue.SimpleQueue() for n in names}
        self.seconds = dict.fromkeys(names, 0.0)
        self.work: dict[str, wirepress.DeviceWork] = {}
        self.failed: list[BaseException] = []
        self.log: list[Span] | None = None

    def behind(self, stage: str, skips: Collection[str] = ()) -> queue.SimpleQueue[Any] | None:
        """Where jobs go from a stage; None: it is the last one."""
        later = self.names[self.names.index(stage) + 1 :]
        return next((self.queues[name] for name in later if name not in skips), None)


class Stages:
    """Runs jobs through the stages `names`, each a thread.

    After a failure the ranks may no longer agree on what comes next: all later jobs fail at once,
    with the same error. `seconds` counts the time that each stage worked or waited, `work` what
    devices did in its thread, and the cores in their place.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self._shared = shared = _Shared(names)
        self.seconds, self.work = shared.seconds, shared.work
        self._first = shared.queues[names[0]]
        threads = [
            threading.Thread(target=_work, args=(n, shared), name=f"wirepress {n}", daemon=True)
            for n in names
        ]
        for thread in threads:
            thread.start()
        self._end = weakref.finalize(self, _end, self._first, threads)

    def submit(self, job: Job) -> None:
        self._first.put(job)

    def log(self, spans: list[Span] | None) -> None:
        """From now on, what each job did in each stage goes to a list; None: nowhere."""
        self._shared.log = spans

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


def _work(name: str, shared: _Shared) -> None:
    # Asking makes PyTorch give this thread the number of threads that the program has set. Before
    # that the library for matrices takes all cores, and adds in another order than on one.
    torch.get_num_threads()
    inbox = shared.queues[name]
    while (job := inbox.get()) is not None:
        begin = time.perf_counter()
        error = _take_part(job, name, shared.failed)
        end = time.perf_counter()
        shared.seconds[name] += end - begin
        shared.work[name] = wirepress.device_work()
        if (log := shared.log) is not None:
            log.append(Span(name, job.label, begin, end))
        outbox = shared.behind(name, job.skips)
        if error is not None or outbox is None:
            job.done(error)
        else:
            outbox.put(job)
        del job  # its buffers go while this thread waits, and whom it would call
    if (outbox := shared.behind(name)) is not None:
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
