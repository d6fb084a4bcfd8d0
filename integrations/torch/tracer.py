# SPDX-License-Identifier: Apache-2.0
"""Traces of trainings: when buckets of DistributedDataParallel were ready, and when summed.

    tracer = wirepress.torch.trace_buckets(model, "trace", sample="64MiB")
    ...
    tracer.close()

The files are those of `wirepress trace` (spec/trace.md), so `wirepress simulate`, `plan` and `trace
show` take them: a bucket is a non-blocking allreduce, the end of the backward pass a wait for all.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from wirepress import arrays, units
from wirepress.errors import ParameterError
from wirepress.sim import trace_writer
from wirepress.torch.compiled import uncompiled
from wirepress.torch.transport import timeout_of

_ROUNDS = 16
_ALLREDUCE, _WAIT, _COMPLETION = (
    trace_writer.CALLS.index(name) for name in ("MPI_Iallreduce", "MPI_Waitall", "completion")
)


class Tracer:
    """Made by `trace_buckets`."""

    def __init__(self, model: DistributedDataParallel, folder: str | Path, sample: int) -> None:
        self._model_group = model.process_group
        n = dist.get_world_size(self._model_group)
        rank = dist.get_rank(self._model_group)
        # its own, so that it mixes with nothing; gloo, whatever the gradients go by
        self._group = dist.new_group(
            dist.get_process_group_ranks(self._model_group),
            timeout=timeout_of(self._model_group),
            backend="gloo",
        )
        said: list[Any] = [None] * n
        mine = (socket.gethostname(), secrets.token_bytes(16))
        dist.all_gather_object(said, mine, group=self._group)
        hosts = list(dict.fromkeys(host for host, _ in said))
        self._nodes = [hosts.index(host) for host, _ in said]
        self._rank, self._n = rank, n
        about = {"host": mine[0], "pid": os.getpid(), "command": " ".join(sys.orig_argv)[:1024],
                 "mpi": f"PyTorch {torch.__version__}, {dist.get_backend(self._model_group)}",
                 "wirepress": "", "sample_bytes": sample // n}  # fmt: skip
        self._out = trace_writer.Writer(folder, said[0][1], rank, self._nodes, about)
        self.path = self._out.path
        self._lock = threading.Lock()  # buckets end on a thread of the group
        self._open: list[dict[str, int]] = []  # of this step
        self._done: dict[int, int] = {}
        self._rows: list[dict[str, int]] = []
        self._number, self._closed = 0, False
        self._waits = 0  # since when
        self._samples, self._dtype = trace_writer.Samples(sample // n), 0
        self._compare_clocks()

    def hook(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:  # what DDP calls
        if self._closed:
            return self._sum(bucket.buffer())
        begin = self._out.now()
        with self._lock:
            if self._waits:
                self._end_step()
            self._number += 1
            number = self._number
        buffer = bucket.buffer()
        size = buffer.numel() * buffer.element_size()
        dtype = str(buffer.dtype).removeprefix("torch.")
        code = arrays.DTYPES.index(dtype) if dtype in arrays.DTYPES else 0
        self._sample(buffer, size, code)
        future = self._sum(buffer)
        end = self._out.now()
        with self._lock:
            self._open.append(
                {"begin": begin, "end": end, "count": buffer.numel(), "sent": size,
                 "received": size, "request": number, "comm": 1, "call": _ALLREDUCE,
                 "dtype": code, "op": 1}
            )  # fmt: skip
            if bucket.is_last():
                self._waits = end

        def summed(done: torch.futures.Future[Any]) -> torch.Tensor:
            with self._lock:
                self._done[number] = self._out.now()
            result: torch.Tensor = done.value()
            return result

        return future.then(summed)

    def _sum(self, buffer: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
        buffer.div_(self._n)
        work = dist.all_reduce(buffer, group=self._model_group, async_op=True)
        future: torch.futures.Future[torch.Tensor] = work.get_future().then(
            lambda done: done.value()[0]
        )
        return future

    def close(self) -> None:
        """Ends the trace; call it on every rank, after the last step. The model may go on."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._open:
                self._waits = self._waits or self._open[-1]["end"]
                self._end_step()
            self._flush()
        for at, stands_for, size, data in self._samples.kept:
            self._out.sample(at, stands_for, size, _ALLREDUCE, self._dtype, data)
        self._compare_clocks()
        self._out.close()

    # The lock is held: what DDP did after its last bucket was to wait for all.
    def _end_step(self) -> None:
        end = max([self._waits, *(self._done.get(row["request"], 0) for row in self._open)])
        self._rows += self._open
        self._rows.append({"begin": self._waits, "end": end, "count": len(self._open),
                           "call": _WAIT})  # fmt: skip
        for row in self._open:
            self._rows.append(
                {"begin": end, "end": end, "request": row["request"], "call": _COMPLETION}
            )
        self._open, self._waits = [], 0
        self._done.clear()
        if len(self._rows) > 1000:
            self._flush()

    def _flush(self) -> None:
        self._out.records(self._rows)
        self._rows = []

    def _sample(self, buffer: torch.Tensor, size: int, code: int) -> None:
        if not self._samples.wants(size):
            return
        n = min(buffer.numel(), self._samples.piece // buffer.element_size())
        first = secrets.randbelow(buffer.numel() - n + 1)
        data = buffer.detach()[first : first + n].cpu().contiguous()
        self._samples.add(self._out.now(), size, bytes(data.view(torch.uint8).numpy()))
        self._dtype = code

    def _compare_clocks(self) -> None:
        """Collective: the first rank of each node but rank 0's, with rank 0."""
        ranks = dist.get_process_group_ranks(self._group)
        for node in range(1, max(self._nodes) + 1):
            leader = self._nodes.index(node)
            if self._rank == 0:
                self._answer(ranks[leader])
            elif self._rank == leader:
                self._ask(ranks[0])

    def _answer(self, peer: int) -> None:
        tick = torch.zeros(1, dtype=torch.int64, device="cpu")
        for _ in range(_ROUNDS):
            dist.recv(tick, peer, group=self._group)
            tick[0] = trace_writer.clock()
            dist.send(tick, peer, group=self._group)

    def _ask(self, peer: int) -> None:
        tick = torch.zeros(1, dtype=torch.int64, device="cpu")
        best = (1 << 62, 0)
        for _ in range(_ROUNDS):
            before = trace_writer.clock()
            dist.send(tick, peer, group=self._group)
            dist.recv(tick, peer, group=self._group)
            after = trace_writer.clock()
            best = min(best, ((after - before) // 2, int(tick[0]) - (before + after) // 2))
        self._out.clocks(best[1], best[0], _ROUNDS)


# DDP looks at annotations, and takes no text for one.
def _call(state, bucket):  # type: ignore[no-untyped-def]
    return state.hook(bucket)


def trace_buckets(
    model: DistributedDataParallel, folder: str | Path, *, sample: int | str = 0
) -> Tracer:
    """Registers a communication hook that sums buckets as DDP does, and records them.

    Args:
        model: a DDP model without another hook. All its ranks must call this.
        folder: for a file of each rank, on every host; must hold no trace of this job.
        sample: bytes of gradients, such as "64MiB", that the files of all ranks may hold.

    Raises:
        ParameterError: the model is not a DDP model, or `sample` is no size.
        OSError: the file cannot be made.
        RuntimeError: the model has a hook already (PyTorch's).
    """
    model = uncompiled(model)
    if not isinstance(model, DistributedDataParallel):
        raise ParameterError(f"{type(model).__name__} is no DistributedDataParallel model")
    size = int(units.parse(sample, "size")) if isinstance(sample, str) else sample
    tracer = Tracer(model, folder, size)
    model.register_comm_hook(tracer, _call)
    return tracer
