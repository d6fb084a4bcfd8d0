# SPDX-License-Identifier: Apache-2.0
"""A communication hook for DistributedDataParallel that sends gradients in compressed form."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
import wirepress
from torch.nn.parallel import DistributedDataParallel
from wirepress.errors import ParameterError
from wirepress.torch import agreement, memory, powersgd
from wirepress.torch.auto import Tuner
from wirepress.torch.coder import PLAIN
from wirepress.torch.compiled import uncompiled
from wirepress.torch.ddp import buckets, checkpoint, timeline
from wirepress.torch.ddp.buckets import Place, Step, after_backward, is_finite, n_bytes, on_host
from wirepress.torch.ddp.pieces import GradientPiece, partitions, seed_of
from wirepress.torch.ddp.plan import (
    PIECE,
    LeftBehind,
    Parameter,
    Plan,
    fits,
    named_parameters,
    without_left_behind,
)
from wirepress.torch.ddp.settings import ON_CPU, ON_DEVICE, Settings
from wirepress.torch.exchange import NOT_FINITE, CodedMean, Counts, Flagged, Piece
from wirepress.torch.stages import Job, Span, Stages
from wirepress.torch.wires import Wires, connect


class State:
    """What `compress` returns: settings, residuals and statistics of one model's hook."""

    def __init__(self, model: DistributedDataParallel, settings: Settings, threads: int) -> None:
        self.settings, self.threads = settings, threads
        self.step = 0
        self.counts = Counts()
        self._group = model.process_group
        self._model = weakref.ref(model)
        self._tuner: Tuner | None = None
        self._nothing = settings.method == "noop"
        self._closed = False
        self._wires: Wires | None = None
        self._streams = buckets.Streams()
        self._stages: Stages | None = None
        self._partition = ON_CPU
        self._log: list[Span] | None = None
        self._current = Step()
        self._last_index = sys.maxsize  # of the last bucket that came
        # Whether DDP may leave a gradient as it is, whatever comes for it; and whole buckets out.
        self._may_miss = self._leaves_out = False
        self._plan = plan = Plan(settings, threads)
        agreement.await_everyone("compress", self._group)
        problem = agreement.first_problem(plan.prepare(model), self._group)
        if problem:
            raise ParameterError(problem)
        self._agree(model)
        methods = {p.method for p in plan.parameters}
        if not self._nothing and methods - {"none"}:
            self._open(model)

    def _open(self, model: DistributedDataParallel) -> None:
        """Makes process groups and threads; a collective call."""
        settings, plan, levels = self.settings, self._plan, self.settings.levels
        if any(p.matrix for p in plan.parameters):
            if levels == 2:
                raise ParameterError("powersgd exchanges on one level: leave out levels=2")
            levels = 1
        self._wires = wires = self._connect(model, levels)
        plan.open(wires.send.size)
        if any(p.method == "auto" for p in plan.parameters):
            self._tuner = Tuner(wires, settings.error_budget)
            self._tuner.measure_link()
        names = ("encode", "send", "sum", "gather", "decode")
        if wires.local_in:
            names = ("local_sum", *names, "local_gather")
        self._stages = Stages(names)

    def _connect(self, model: DistributedDataParallel, levels: int | None) -> Wires:
        """The wires; and the partition, where the program leaves that open. It is the same on all
        ranks: each job of one meets those of the others."""
        asked = self.settings.partition
        most, there = (max(asked or own, PIECE) for own in (ON_CPU, ON_DEVICE))
        trained = [tensor for _, tensor in named_parameters(model) if tensor.requires_grad]
        devices = {tensor.device for tensor in trained if buckets.stays(tensor)}
        stays = len(devices) == 1 and all(map(buckets.stays, trained))
        device = devices.pop() if all(agreement.gathered(stays, self._group)) else None
        wires = connect(self._group, most, levels, device, there)
        works_there = bool(device) and (wires.adds_there or not wires.local_in)
        everyone = agreement.gathered(works_there, self._group) if device else [False]
        self._partition = asked or (ON_DEVICE if all(everyone) else ON_CPU)
        return wires

    def _agree(self, model: DistributedDataParallel) -> None:
        """Finds out at once whether ranks have other settings or another model, or would make
        larger messages than others have room for, at which gloo ends the process."""
        words = [(n, tuple(p.shape), p.dtype, p.requires_grad) for n, p in named_parameters(model)]
        model_ = hashlib.sha256(repr(words).encode()).hexdigest()
        mine = {**dataclasses.asdict(self.settings), "model": model_}
        mine["wirepress' version"] = wirepress.__version__
        for recipe, bound in self._plan.bounds.items():
            mine[f"the largest frame of {recipe}, as by WIREPRESS_BLOCK_SIZE"] = bound
        agreement.check_alike(mine, self._group)

    def __reduce__(self) -> tuple[Any, ...]:
        """A model that is pickled or copied takes its hooks along, but what this state holds stays
        with the process: connections, threads, residuals."""
        return _left_behind, (self.settings.method,)

    # ---- the hook ----

    @property
    def _watches(self) -> bool:
        """Whether residuals are compared with gradients in this step; it costs two passes."""
        return self.step <= self.settings.warmup_steps + 3 or self.step % 64 == 0

    def _begin_step(self, has_data: bool, device: torch.device) -> None:
        self.step += 1
        self.counts.steps += 1
        self._current = Step(self._divisor(has_data, device))
        model = self._model()
        self._may_miss = model is not None and (model.find_unused_parameters or model.static_graph)
        self._leaves_out = getattr(model, "skip_all_reduce_unused_params", False)
        if self._tuner and self._tuner.begin_step():
            self._plan.take_over({choice.name: choice.recipe for choice in self._tuner.choices})
        if self.settings.on_nonfinite != "pass":
            for p in self._plan.parameters:
                p.backup = p.saved()

    def _divisor(self, has_data: bool, device: torch.device) -> int:
        """The ranks that this step's sums are divided by: all, or in a join those with data."""
        if not buckets.divides_by_those_with_data(self._model()):
            return dist.get_world_size(self._group)
        count = torch.tensor(int(has_data), device=device)
        dist.all_reduce(count, group=self._group)
        return int(count)

    def _hook(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        self._check_open()
        # With backward(create_graph=True) it is in the graph, where nothing may write in place.
        buffer = bucket.buffer().detach()
        in_backward = torch._C._current_graph_task_id() >= 0
        # Buckets come in order; DDP may leave out the first one, and the last.
        if bucket.index() <= self._last_index:
            self._begin_step(in_backward, buffer.device)
        self._last_index = bucket.index()
        step = self._current
        if in_backward and (bucket.is_last() or self._leaves_out):
            after_backward(functools.partial(self._check, step))
        step.add(bucket.is_last())
        future = self._exchange(bucket, buffer, step)
        if not in_backward:  # DDP's join, of a rank without data, which looks at no error
            future.wait()
            if bucket.is_last():
                step.check()
        return future

    def _check(self, step: Step) -> None:
        """At the end of the backward pass: all buckets that come have come, and are done."""
        if self._leaves_out and step.close():
            self._end_step(step)
        step.check()

    def _exchange(
        self, bucket: dist.GradBucket, buffer: torch.Tensor, step: Step
    ) -> torch.futures.Future[torch.Tensor]:
        if self._nothing:
            future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
            future.set_result(buffer)
            return future
        if self._stages is None or self.step <= self.settings.warmup_steps or not fits(buffer):
            return self._plain(bucket, buffer, step)
        if self._tuner and self._tuner.plain:
            if self._tuner.samples:
                self._sample(self._tuner, bucket, buffer)
            return self._plain(bucket, buffer, step)
        return self._compressed(bucket, buffer, step)

    def _plain(
        self, bucket: dist.GradBucket, buffer: torch.Tensor, step: Step
    ) -> torch.futures.Future[torch.Tensor]:
        """PyTorch's own all-reduce, as without a hook."""
        self.counts.plain_bytes += n_bytes(buffer)
        factor = 1 / step.divisor  # as DDP without a hook, to the bit
        # The values of a sparse gradient may be memory of another one that is still on its way.
        buffer = buffer * factor if buffer.is_sparse else buffer.mul_(factor)
        names = [self._plan.by_id[id(tensor)].name for tensor in bucket.parameters()]

        def finish(done: torch.futures.Future[Any]) -> torch.Tensor:
            result = buffer
            try:
                result = done.value()[0]
                if self.settings.on_nonfinite != "pass" and not is_finite(result):
                    self._act_not_finite(names, "a rank", step)
            except BaseException as error:
                step.note(error)
            self._finish_bucket(step)
            return result

        future: torch.futures.Future[Any] = dist.all_reduce(
            buffer, group=self._group, async_op=True
        ).get_future()
        return future.then(finish)

    def _sample(self, tuner: Tuner, bucket: dist.GradBucket, buffer: torch.Tensor) -> None:
        for p, values in self._slices(bucket, buffer):
            if p.method == "auto" and p.n >= self.settings.min_values:
                tuner.sample(p.name, values.detach().float().cpu())

    def _slices(
        self, bucket: dist.GradBucket, values: torch.Tensor
    ) -> list[tuple[Parameter, torch.Tensor]]:
        """The parameters of a bucket, and which of its values are theirs: one behind the other.
        (`bucket.gradients()` is wrong for complex ones: it takes half of their numbers.)"""
        parameters = [self._plan.by_id[id(tensor)] for tensor in bucket.parameters()]
        sizes = [p.n for p in parameters]
        if sum(sizes) != values.numel():
            raise ParameterError(
                f"a bucket of {values.numel()} values has parameters of {sum(sizes)}: this PyTorch "
                f"({torch.__version__}) arranges buckets in a way that wirepress does not know"
            )
        return list(zip(parameters, values.split(sizes), strict=True))

    def _compressed(
        self, bucket: dist.GradBucket, buffer: torch.Tensor, step: Step
    ) -> torch.futures.Future[torch.Tensor]:
        place = self._place(bucket, buffer)
        with place.scope():
            jobs = self._jobs(bucket, place)
        return self._submit(jobs, buffer, place, step, f"step {self.step}, bucket {bucket.index()}")

    def _place(self, bucket: dist.GradBucket, buffer: torch.Tensor) -> Place:
        """On the bucket's device, but where ranks of a host add in memory of the CPU. That, the
        products of PowerSGD, and the momentum and the clipping of DGC take float32."""
        wires = self._wires
        assert wires
        parameters = [self._plan.by_id[id(tensor)] for tensor in bucket.parameters()]
        wide = bool(wires.local_in) and not wires.adds_there
        if wide or not buckets.stays(buffer):
            wide = wide or any(p.matrix or p.momentum or p.clip is not None for p in parameters)
            return on_host(buffer, halves=not wide)
        return self._streams.place(buffer, bucket.index())

    def _jobs(
        self, bucket: dist.GradBucket, place: Place
    ) -> list[Callable[[Callable[[BaseException | None], None]], Job]]:
        jobs: list[Callable[[Callable[[BaseException | None], None]], Job]] = []
        pieces: dict[bool, list[Piece]] = {True: [], False: []}
        matrices: list[powersgd.Matrix] = []
        itemsize = bucket.buffer().nbytes // max(place.values.numel(), 1)
        for p, values in self._slices(bucket, place.values):
            if p.matrix:
                matrices.append(self._matrix(p, values, itemsize))
            elif p.n:
                self._clip(p, values)
                pieces[p.gather] += self._pieces(p, values, itemsize)
        assert self._wires
        wires, counts = self._wires, self.counts
        for gather, some in pieces.items():
            for part in partitions(some, self._partition):
                jobs.append(
                    lambda finished, part=part, gather=gather: CodedMean(
                        wires, part, counts, gather=gather, finished=finished
                    )
                )
        if matrices:
            jobs.append(lambda finished: powersgd.LowRankMean(wires, matrices, counts, finished))
        return jobs

    def _submit(
        self,
        jobs: Sequence[Callable[[Callable[[BaseException | None], None]], Job]],
        buffer: torch.Tensor,
        place: Place,
        step: Step,
        label: str,
    ) -> torch.futures.Future[torch.Tensor]:
        ready, log = time.perf_counter(), self._log
        devices = [buffer.device] if buffer.is_cuda else None
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future(devices=devices)
        waiting = [len(jobs)]
        errors: list[BaseException] = []
        lock = threading.Lock()

        def finished(error: BaseException | None) -> None:
            with lock:
                if error:
                    errors.append(error)
                waiting[0] -= 1
                if waiting[0] > 0:
                    return
            with place.scope():  # which the future makes others wait for
                try:
                    for found in errors:
                        self._act(found, place.values, step)
                    if (n := dist.get_world_size(self._group)) != step.divisor:
                        place.values.mul_(n / step.divisor)
                    place.fetch()
                except BaseException as raised:
                    step.note(raised)
                self._finish_bucket(step)
                if log is not None:
                    log.append(Span("bucket", label, ready, time.perf_counter()))
                future.set_result(buffer)

        assert self._stages
        if not jobs:
            finished(None)
        for number, make in enumerate(jobs):
            job = make(finished)
            job.scope, job.label = place.scope, f"{label}, part {number}"
            self._stages.submit(job)
        return future

    def _finish_bucket(self, step: Step) -> None:
        if step.finish_one():
            self._end_step(step)

    def _end_step(self, step: Step) -> None:
        """After a step that is skipped, or whose error is raised, all is as before it."""
        if step.lost:
            self.counts.skipped_steps += self.settings.on_nonfinite == "skip"
            for p in self._plan.parameters:
                p.load(p.backup)
            for device in {
                p.residual.device for p in self._plan.parameters if p.residual is not None
            }:
                if device.type == "cuda":  # the copies are done before the backups' memory is free
                    torch.cuda.current_stream(device).synchronize()
        for p in self._plan.parameters:
            p.backup = {}

    def _act(self, error: BaseException, host: torch.Tensor, step: Step) -> None:
        """On what a rank found, the same on all; anything else is raised."""
        if not isinstance(error, Flagged):
            host.fill_(float("nan"))
            raise error
        p = self._plan.named[error.name]
        if error.kind == NOT_FINITE:
            host.fill_(float("nan"))
            self._act_not_finite([error.name], f"rank {error.rank}", step)
        elif self.settings.on_expansion == "raise":
            raise ParameterError(
                f'"{p.method}" with error feedback makes the residual of "{error.name}" grow (rank '
                f"{error.rank}): its error is larger than the gradient, so training would diverge. "
                f"Use a finer setting, error_feedback=False, or on_expansion='plain'"
            )
        else:
            p.feedback, p.residual, p.sum_residuals = False, None, {}
            self._plan.send_with(p, PLAIN)

    def _act_not_finite(self, names: Sequence[str], where: str, step: Step) -> None:
        step.lost = True
        if self.settings.on_nonfinite == "raise":
            some = " or ".join(f'"{name}"' for name in names[:3]) + " ..." * (len(names) > 3)
            raise FloatingPointError(f"the gradient of {some} is not finite on {where}")

    def _clip(self, p: Parameter, values: torch.Tensor) -> None:
        """Local gradient clipping of DGC, by parameter. The paper clips what a rank adds to the
        mean, g / ranks, at clip / sqrt(ranks): the norm of independent parts of a mean of norm
        clip."""
        if p.clip is not None:
            most = p.clip * dist.get_world_size(self._group) ** 0.5
            norm = torch.linalg.vector_norm(values)
            if memory.on_device(values):  # which the backward pass does not wait for
                values.mul_(torch.where(norm > most, most / norm.double(), 1.0))
            elif norm > most:
                values.mul_(most / float(norm))

    def _pieces(self, p: Parameter, values: torch.Tensor, itemsize: int) -> list[Piece]:
        assert self._wires
        n_owners = self._wires.send.size
        n_local = self._wires.local_in.size if self._wires.local_in else 1
        coder = p.coder
        if p.ramp:
            level = (self.step - 1) * len(p.ramp) // max(self.settings.ramp_steps, 1)
            coder = p.ramp[level] if level < len(p.ramp) else coder
        return [
            GradientPiece(
                p.name,
                values[start:end],
                coder,
                (p.number + number // n_local) % n_owners,
                p.sum_coder,
                (p.number + number) % n_local,
                seed_of(self.settings.seed, self.step, p.number, number, self._wires.rank),
                itemsize,
                parameter=p,
                start=start,
                settings=self.settings,
                watches=self._watches,
                may_miss=self._may_miss,
            )
            for number, (start, end) in enumerate(p.pieces(n_owners * n_local))
        ]

    def _matrix(self, p: Parameter, values: torch.Tensor, itemsize: int) -> powersgd.Matrix:
        assert p.matrix is not None
        if p.q is None:
            seed = self.settings.seed + p.number
            p.q = powersgd.first_q(p.matrix[1], powersgd.rank_of(p.method), seed)
        p.q = p.q.to(values.device)
        if p.feedback:
            kept = None if p.residual is None else p.residual.view(-1)
            p.residual = memory.beside(values, kept, p.n).view(p.matrix)
        watched = self.settings.on_nonfinite != "pass"
        matrix = values.view(p.matrix)
        return powersgd.Matrix(
            p.name,
            matrix,
            p.residual,
            p.q,
            watched,
            itemsize,
            may_miss=self._may_miss,
            decay=self.settings.feedback_decay,
        )

    # ---- for the user ----

    def close(self) -> None:
        """Ends the threads and process groups, and frees the residuals.

        Every rank calls it, between steps; more than once does no harm. (Groups of a model on some
        of the ranks stay until `destroy_process_group`.) After it the model cannot
        exchange gradients (its backward pass raises ParameterError), for PyTorch lets go of no
        hook: wrap the module in a new DistributedDataParallel to train on. `statistics`, `choices`
        and `explain` still answer. Without it all that ends with the model.
        """
        if self._closed:
            return
        self._closed = True
        if self._stages:
            self._stages.close()
        if self._wires:
            self._wires.close()
        for p in self._plan.parameters:
            p.residual = p.velocity = p.q = None
            p.sum_residuals, p.backup = {}, {}

    def _check_open(self) -> None:
        if self._closed:
            raise ParameterError(
                "this state was closed, and its model's gradients cannot be exchanged any more: "
                "wrap the module in a new DistributedDataParallel"
            )

    def statistics(self) -> dict[str, Any]:
        """What this rank did so far: `Counts`, the bytes it sent, seconds by stage.

        `sent_bytes` left this rank by wirepress' own messages (between hosts where there are two
        levels, whose ranks of a host add up as `adds_in_host` says: on "devices", in "memory" of
        the CPU that they share, by "messages"). `ratio` is bytes of gradients by bytes of frames.
        Of gradients of a CUDA device
        `device_bytes` were coded and expanded there, in all steps of the exchange, and
        `cores_bytes` on the CPU in its place; `cores_reason` says why, of some of them.
        """
        counts = dataclasses.asdict(self.counts)
        coded = counts["coded_bytes"]
        return {
            **counts,
            "ratio": counts["raw_bytes"] / coded if coded else 1.0,
            "sent_bytes": self._wires.sent if self._wires else 0,
            "sent_bytes_in_host": self._wires.sent_locally if self._wires else 0,
            "adds_in_host": self._wires.adds_in_host if self._wires else "",
            "seconds": dict(self._stages.seconds) if self._stages else {},
            **self._device_work(),
        }

    def _device_work(self) -> dict[str, Any]:
        all_work = list(self._stages.work.values()) if self._stages else []
        return {
            "device_bytes": sum(work.device_bytes for work in all_work),
            "cores_bytes": sum(work.cores_bytes for work in all_work),
            "cores_reason": next((work.reason for work in all_work if work.reason), ""),
        }

    @contextlib.contextmanager
    def timeline(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Within the block, notes when each bucket was ready and when each stage had its parts, and
        writes that for https://ui.perfetto.dev or chrome://tracing: a file for each rank, whose
        number goes before the suffix.

            with state.timeline("steps.json"):
                ...  # some steps

        Stages "send" and "gather" wait for messages of others, "decode" at its end until the own
        ones have left; with PowerSGD "sum" and "decode" wait for messages, too. Buckets
        that go by PyTorch's all-reduce are not there. Times of ranks of one host have one clock.
        """
        self._check_open()
        rank = dist.get_rank(self._group)
        self._log = spans = []
        if self._stages:
            self._stages.log(spans)
        try:
            yield
        finally:
            self._log = None
            if self._stages:
                self._stages.log(None)
            stages = self._stages.names if self._stages else ()
            timeline.write(path, rank, ("bucket", *stages), spans)

    def choices(self) -> dict[str, str]:
        """How the gradient of each parameter that is trained is sent, by its name; "none": as it
        is, because of the settings, its size or its type."""
        return self._plan.choices()

    def with_momentum(self) -> set[str]:
        """Names of the parameters whose gradients arrive with momentum, by DGC: the optimizer
        shall add none to these."""
        return {p.name for p in self._plan.parameters if p.momentum}

    def explain(self) -> str:
        """With method "auto": what was chosen and why, as a table."""
        if not self._tuner:
            return "nothing was to be chosen: " + ", ".join(sorted(set(self.choices().values())))
        return self._tuner.explain()

    def state_dict(self) -> dict[str, Any]:
        """What training needs to go on with the same bits. It is of this rank: save one for each,
        or `full_state_dict`.

        Call it between steps. Tensors are copies.
        """
        self._check_open()
        return checkpoint.saved(self._plan, self._group, self.step)

    def full_state_dict(self) -> dict[str, Any]:
        """The states of all ranks in one, on rank 0 of the model's group; {} on the others.

        A collective call, for programs that save on one rank and load the same file on all
        (`FullState` gives them that). Rank 0 needs memory for the residuals of all ranks: about 4
        bytes for each value of the gradient and rank.
        """
        return agreement.full(self.state_dict(), self._group)

    def load_state_dict(self, saved: Mapping[str, Any], *, strict: bool = True) -> None:
        """Goes on from what `state_dict` of the same rank, or `full_state_dict`, gave.

        A collective call. What the saved state does not hold starts anew.

        Args:
            strict: refuse what was saved with other settings, by another rank or another number of
                ranks. Else its residuals are dropped: error feedback begins anew.

        Raises:
            ParameterError: it does not fit, on any rank; then no rank has changed anything.
        """
        self._check_open()
        mine = agreement.own_part(saved, dist.get_rank(self._group))
        if problem := agreement.first_problem(checkpoint.problem(mine), self._group):
            raise ParameterError(problem)
        differ = agreement.first_problem(
            checkpoint.difference(mine, self._plan, self._group), self._group
        )
        if differ and strict:
            raise ParameterError(differ)
        agreement.check_alike({"the saved step": mine["step"]}, self._group)
        self.step = int(mine["step"])
        residuals = {} if differ else mine["residuals"]
        if not differ:
            self._plan.take_over(mine["choices"])
        for p in self._plan.parameters:
            p.load(residuals.get(p.name, {}))


def compress(
    model: DistributedDataParallel,
    method: str = "int8",
    *,
    rules: Mapping[str, str] | None = None,
    threads: int | None = None,
    **knobs: Any,
) -> State:
    """Registers a communication hook that sends the gradients of `model` in compressed form.

    A collective call: every rank makes it, after DistributedDataParallel and before the first
    backward pass. Gradients of float32, bfloat16, float16 and complex64, on the CPU or CUDA, are
    compressed; those of other types, and sparse ones, go by PyTorch's own all-reduce.

    Args:
        model: may be compiled (torch.compile), and so may the module in it.
        method: a recipe of codecs ("int8", "onebit", "terngrad+trits", "topk:ratio=0.01", "planes";
            see `wirepress.codecs`), "dgc:ratio=0.001" (with momentum correction: give the
            optimizer no momentum of its own), "powersgd:rank=4", "none" (PyTorch's all-reduce),
            "noop" (sends nothing: an upper bound for what can be gained, not for training), or
            "auto": each parameter's from what is measured on it, and none if that does not gain
            (`State.explain`).
        rules: methods by parameter name, `{"*embedding*": "planes"}`; the first pattern (fnmatch)
            that fits counts.
        threads: that encode and decode, per stage; None: the processors of this rank, at most 4.
        error_feedback: send in the next step what a lossy codec dropped in this; None: where the
            codec wants it, which is all but the finest and the unbiased ones.
        feedback_decay: what is left of a residual in the next step (ECQ-SGD; Wu, Huang, Huang,
            Zhang; ICML 2018). Below 1 not all that was dropped arrives, but what does is newer:
            0.5 steadies onebit at learning rates near the highest that training bears.
        warmup_steps: first steps that go uncompressed (onebit needs some).
        min_values: smaller parameters go uncompressed.
        algorithm: "gather" (one lossy step, small payloads, few ranks), "scatter", or "auto".
        levels: 1, or 2: add up inside hosts first; None: 2 where hosts have several ranks.
        partition: values of a bucket that pass the pipeline at once, but a parameter's piece, of up
            to 2^20, as a whole: fewer are on their way sooner, more cost less of the processor.
            None: 2^21, or on CUDA devices, which wait for each, 2^23.
        on_nonfinite: NaN or infinity in a gradient: "pass" as the codec does (they arrive as NaN),
            "skip": the whole bucket becomes NaN on all ranks, so that a GradScaler skips the
            step; "raise": FloatingPointError with the name comes out of `backward` on all ranks.
            In both cases residuals go back to before the step; they are copied for that in every
            step.
        on_expansion: a codec whose error exceeds the gradient, so that error feedback diverges:
            "raise", or "plain": that parameter goes uncompressed from then on.
        error_budget: of auto: relative error (root mean square) of the whole gradient; 0: lossless.
        momentum, clip, ramp_steps: of dgc: momentum correction, of the parameters that go
            uncompressed, too; clipping of local gradients by parameter, so that their mean has
            about this norm; steps in which the ratio falls from 25 %.
        seed: for codecs that round at random.
        checksum: of every block, against faults below TCP.

    Raises:
        ParameterError: `model` is no DistributedDataParallel or has a hook, an unknown method or
            knob, a rule that fits no parameter, ranks with different settings, or ranks that do not
            call it.
    """
    model = uncompiled(model)
    if not isinstance(model, DistributedDataParallel):
        raise ParameterError(
            f"compress wants a DistributedDataParallel model, not {type(model).__name__}"
        )
    known = {field.name for field in dataclasses.fields(Settings)} - {"method", "rules"}
    unknown = sorted(set(knobs) - known)
    if unknown:
        raise ParameterError(f"no knob {unknown[0]!r}; known: {', '.join(sorted(known))}")
    settings = Settings(method, tuple((rules or {}).items()), **knobs)
    state = State(model, settings, threads if threads else _threads())
    model._comm_hooks[:] = without_left_behind(model)
    model.register_comm_hook(state, _call)
    return state


def _call(state, bucket):  # type: ignore[no-untyped-def]
    """Without annotations, for PyTorch compares them, which here are strings, with its types."""
    if isinstance(bucket, tuple):
        raise ParameterError(
            "wirepress.torch.compress wants buckets; torch._dynamo.config.optimize_ddp="
            '"python_reducer" has none: leave that setting as it was'
        )
    return state._hook(bucket)


def _left_behind(method: str) -> LeftBehind:
    warnings.warn(
        f'this copy of a DistributedDataParallel model sends plain gradients: "{method}" stayed '
        "with the model that it was copied or saved from; call wirepress.torch.compress again, and "
        "load_state_dict of what its state_dict gave",
        stacklevel=2,
    )
    return LeftBehind()


def _threads() -> int:
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(1, min(4, len(os.sched_getaffinity(0)) // max(ranks, 1)))
