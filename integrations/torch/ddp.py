# SPDX-License-Identifier: Apache-2.0
"""A communication hook for DistributedDataParallel that sends gradients in compressed form."""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from wirepress.errors import ParameterError, WirepressError
from wirepress.torch import agreement, powersgd
from wirepress.torch.auto import Tuner
from wirepress.torch.coder import (
    Coder,
    PlainCoder,
    check_recipe,
    first_codec,
    gather_is_smaller,
    own_name,
    parameter,
    second_coder,
    settled,
    uncompiled,
)
from wirepress.torch.exchange import EXPANDS, NOT_FINITE, CodedMean, Counts, Flagged, Piece
from wirepress.torch.stages import Job, Stages
from wirepress.torch.wires import Wires, connect

PIECE = 1 << 20  # most values of a piece
ALIGN = 4096  # values; gradient codecs have a scale for so many
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_FORMAT = 1  # of state_dict


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `compress` was called with. All ranks must have the same."""

    method: str
    rules: tuple[tuple[str, str], ...] = ()
    error_feedback: bool | None = None
    feedback_decay: float = 1.0
    warmup_steps: int = 0
    min_values: int = 4096
    algorithm: str = "auto"
    levels: int | None = None
    partition: int = 2 << 20
    on_nonfinite: str = "pass"
    on_expansion: str = "raise"
    error_budget: float = 0.15
    momentum: float = 0.9
    clip: float | None = None
    ramp_steps: int = 0
    seed: int = 0
    checksum: bool = False

    def check(self) -> None:
        """Raises ParameterError for what cannot be."""
        for name, known in (
            ("algorithm", ("auto", "gather", "scatter")),
            ("levels", (None, 1, 2)),
            ("on_nonfinite", ("pass", "skip", "raise")),
            ("on_expansion", ("raise", "plain")),
        ):
            if getattr(self, name) not in known:
                words = ", ".join(repr(word) for word in known)
                raise ParameterError(f"{name}={getattr(self, name)!r}: one of {words}")
        for name in ("warmup_steps", "min_values", "ramp_steps", "seed"):
            if getattr(self, name) < 0:
                raise ParameterError(f"{name}={getattr(self, name)} is negative")
        if self.partition < ALIGN:
            raise ParameterError(f"partition={self.partition}: at least {ALIGN} values")
        if not 0 <= self.momentum < 1:
            raise ParameterError(f"momentum={self.momentum}: from 0 to below 1")
        if not 0 < self.feedback_decay <= 1:
            raise ParameterError(f"feedback_decay={self.feedback_decay}: above 0, at most 1")
        if not 0 <= self.error_budget < 1:
            raise ParameterError(f"error_budget={self.error_budget}: from 0 to below 1")
        if self.clip is not None and not self.clip > 0:
            raise ParameterError(f"clip={self.clip}: above 0, or None")


class _Parameter:
    """How one parameter's gradient is sent, and what is remembered of it."""

    def __init__(
        self, number: int, name: str, parameter: torch.Tensor, method: str, sparse: bool
    ) -> None:
        self.number, self.name, self.method = number, name, method
        self.n = _n_reals(parameter)
        self.trained = parameter.requires_grad
        self.fits = not sparse and _fits(parameter)
        self.coder: Coder | PlainCoder = PlainCoder()
        self.second: Coder | PlainCoder = self.coder
        self.feedback = self.gather = False
        self.matrix: tuple[int, int] | None = None  # of PowerSGD
        self.momentum = 0.0  # of DGC
        self.clip: float | None = None
        self.ramp: list[Coder] = []  # of DGC, its coders of the first steps
        self.residual: torch.Tensor | None = None
        self.velocity: torch.Tensor | None = None
        self.q: torch.Tensor | None = None
        self.sum_residuals: dict[int, torch.Tensor] = {}  # by the piece's first value
        self.backup: dict[str, Any] = {}

    def saved(self) -> dict[str, Any]:
        """Copies of all that changes from step to step; what is not there yet is left out."""
        own = {"residual": self.residual, "velocity": self.velocity, "q": self.q}
        entry: dict[str, Any] = {key: t.clone() for key, t in own.items() if t is not None}
        if self.sum_residuals:
            entry["sums"] = {start: t.clone() for start, t in self.sum_residuals.items()}
        return entry

    def takes(self, entry: Mapping[str, Any]) -> bool:
        """Whether what was saved has this parameter's sizes."""
        flat = [entry[key] for key in ("residual", "velocity") if key in entry]
        return all(tensor.numel() == self.n for tensor in flat)

    def load(self, entry: Mapping[str, Any]) -> None:
        """Takes copies of what `saved` gave; what that left out starts anew."""
        for key in ("residual", "velocity", "q"):
            setattr(self, key, entry[key].clone() if key in entry else None)
        self.sum_residuals = {start: t.clone() for start, t in entry.get("sums", {}).items()}

    def pieces(self, n_owners: int) -> list[tuple[int, int]]:
        """(first value, end) of its pieces. They depend on nothing but n and the number of owners,
        so that a restart, which has other buckets in its first step, codes the same."""
        size = min(PIECE, -(-self.n // (n_owners * ALIGN)) * ALIGN)
        return [(at, min(at + size, self.n)) for at in range(0, self.n, max(size, 1))]


@dataclasses.dataclass
class _GradientPiece(Piece):
    owned: _Parameter | None = None
    start: int = 0  # in the parameter
    state: State | None = None
    norm: float = 0.0

    @property
    def _what(self) -> tuple[_Parameter, State]:
        assert self.owned and self.state
        return self.owned, self.state

    def check(self) -> int:
        _, state = self._what
        if state.settings.on_nonfinite == "pass" or bool(self.values.sum().isfinite()):
            return 0
        return 0 if bool(self.values.isfinite().all()) else NOT_FINITE

    def _residual(self) -> torch.Tensor | None:
        owned, _ = self._what
        if not owned.feedback:
            return None
        if owned.residual is None:
            owned.residual = torch.zeros(owned.n)
        return self._part(owned.residual)

    def _part(self, whole: torch.Tensor) -> torch.Tensor:
        """What belongs to this piece, of something that the parameter has for each value."""
        return whole[self.start : self.start + self.values.numel()]

    def encode(self, out: torch.Tensor) -> int:
        owned, state = self._what
        residual = self._residual()
        if residual is None and owned.residual is not None:  # left by another codec
            rest = self._part(owned.residual)
            self.values.add_(rest)
            rest.zero_()
        if residual is not None and state.settings.feedback_decay != 1:
            residual.mul_(state.settings.feedback_decay)
        if owned.momentum:
            self._accumulate(owned)
        if state.watches and residual is not None:
            self.norm = float(torch.linalg.vector_norm(self.values + residual))
        size = self.coder.encode(self.values, out, residual, self.seed)
        if owned.momentum and owned.velocity is not None and residual is not None:
            # momentum factor masking: what was sent starts anew
            self._part(owned.velocity).mul_(residual != 0)
        return size

    def _accumulate(self, owned: _Parameter) -> None:
        """Momentum correction of DGC (Lin et al., ICLR 2018, algorithm 4): the velocity is what is
        accumulated, in the residual, and sent."""
        if owned.velocity is None:
            owned.velocity = torch.zeros(owned.n)
        velocity = self._part(owned.velocity)
        if bool(self.values.sum().isfinite()):
            velocity.mul_(owned.momentum).add_(self.values)
        else:  # what is not finite is passed on once and not remembered
            velocity.zero_()
            return
        self.values.copy_(velocity)

    def verdict(self) -> int:
        owned, state = self._what
        residual = self._residual()
        if not state.watches or residual is None or owned.coder.sparse:
            return 0
        left = float(torch.linalg.vector_norm(residual))
        return EXPANDS if left >= self.norm > 0 else 0

    def encode_sum(self, mean: torch.Tensor, out: torch.Tensor) -> int:
        owned, state = self._what
        residual = None
        if owned.feedback:
            residual = owned.sum_residuals.setdefault(self.start, torch.zeros_like(mean))
            if state.settings.feedback_decay != 1:
                residual.mul_(state.settings.feedback_decay)
        assert self.second
        return self.second.encode(mean, out, residual, self.seed ^ 1)


class _Step:
    """The buckets of one backward pass: what is still on its way, and what went wrong."""

    def __init__(self) -> None:
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

    def note(self, error: BaseException) -> None:
        with self._lock:
            self.error = self.error or error

    def check(self) -> None:
        """Raises what went wrong, once."""
        error, self.error = self.error, None
        if error is not None:
            raise error


class State:
    """What `compress` returns: settings, residuals and statistics of one model's hook."""

    def __init__(self, model: DistributedDataParallel, settings: Settings, threads: int) -> None:
        self.settings, self.threads = settings, threads
        self.step = 0
        self.counts = Counts()
        self._group = model.process_group
        self._coders: dict[str, Coder] = {}
        self._seconds: dict[str, Coder | PlainCoder] = {}  # for sums, by recipe
        self._tuner: Tuner | None = None
        self._nothing = settings.method == "noop"
        self._closed = False
        self._wires: Wires | None = None
        self._stages: Stages | None = None
        self._current = _Step()
        self._by_id: dict[int, _Parameter] = {}
        agreement.await_everyone("compress", self._group)
        problem = agreement.first_problem(self._prepare(model), self._group)
        if problem:
            raise ParameterError(problem)
        self._parameters = {p.name: p for p in self._by_id.values()}
        self._first_choices = self.choices()
        self._agree(model)
        methods = {p.method for p in self._by_id.values()}
        if not self._nothing and methods - {"none"}:
            self._open()

    # ---- what is sent how ----

    def _prepare(self, model: DistributedDataParallel) -> str:
        """Sets up the parameters; returns what is wrong with the settings, "" for nothing."""
        try:
            self.settings.check()
            if model._comm_hooks:
                raise ParameterError(
                    "the model cannot take a hook: it has one, and PyTorch takes no second"
                )
            named = list(_named_parameters(model))
            self._check_methods([name for name, _ in named])
            sparse = _with_sparse_gradients(model)
            for number, (name, tensor) in enumerate(named):
                p = _Parameter(number, name, tensor, self._method(name), id(tensor) in sparse)
                self._by_id[id(tensor)] = p
                self._choose(p, tensor)
        except (WirepressError, ValueError, TypeError) as error:
            return str(error)
        return ""

    def _check_methods(self, names: Sequence[str]) -> None:
        """What can be said of methods and rules before there is a gradient."""
        rules = self.settings.rules
        for pattern, _ in rules:
            if not fnmatch.filter(names, pattern):
                some = ", ".join(f'"{name}"' for name in names[:3])
                raise ParameterError(f'rule "{pattern}" fits no parameter; there are {some} ...')
        for method in (self.settings.method, *(method for _, method in rules)):
            if method == "noop" and method != self.settings.method:
                raise ParameterError("noop is for a whole model: no rule can choose it")
            if first_codec(method) == "powersgd":
                powersgd.rank_of(method)
            elif method not in ("none", "noop", "auto"):
                check_recipe(method)
                self._coder(settled(method))

    def _method(self, name: str) -> str:
        for pattern, method in self.settings.rules:
            if fnmatch.fnmatchcase(name, pattern):
                return method
        return self.settings.method

    def _choose(self, parameter_: _Parameter, tensor: torch.Tensor) -> None:
        """The coder, or the matrix, of a parameter."""
        settings, method = self.settings, parameter_.method
        dgc = first_codec(method) == "dgc"
        if dgc and settings.warmup_steps:
            raise ParameterError("dgc is warmed up by ramp_steps: plain steps lack its momentum")
        if not parameter_.fits:
            return
        if dgc:  # of small ones, too: the optimizer has none
            parameter_.momentum, parameter_.clip = settings.momentum, settings.clip
        if method in ("none", "noop", "auto") or parameter_.n < settings.min_values:
            return
        if first_codec(method) == "powersgd":
            rank = powersgd.rank_of(method)
            parameter_.matrix = powersgd.shape_of(tuple(tensor.shape), parameter_.n, rank)
            parameter_.feedback = settings.error_feedback is not False
            return
        parameter_.coder = self._coder(settled(method))
        parameter_.feedback = self._feedback(parameter_.coder)
        if dgc:
            self._choose_dgc(parameter_)

    def _choose_dgc(self, parameter_: _Parameter) -> None:
        settings, method = self.settings, parameter_.method
        if not parameter_.feedback:
            raise ParameterError(
                "dgc is error feedback with momentum: use topk or graddrop without"
            )
        ratio, share = parameter(method, "ratio", 0.001), 0.25
        while settings.ramp_steps and share > ratio:  # 75 %, 93.75 %, ... sparse, as in the paper
            parameter_.ramp.append(self._coder(f"dgc:ratio={share}"))
            share /= 4

    def _coder(self, recipe: str) -> Coder:
        if recipe not in self._coders:
            self._coders[recipe] = Coder(
                recipe, threads=self.threads, checksum=self.settings.checksum
            )
        return self._coders[recipe]

    def _open(self) -> None:
        """Makes process groups and threads; a collective call."""
        settings = self.settings
        levels = settings.levels
        if any(p.matrix for p in self._parameters.values()):
            if levels == 2:
                raise ParameterError("powersgd exchanges on one level: leave out levels=2")
            levels = 1
        self._wires = wires = connect(self._group, max(settings.partition, PIECE), levels)
        for p in self._parameters.values():
            self._send_with(p, p.coder)
        if any(p.method == "auto" for p in self._parameters.values()):
            self._tuner = Tuner(wires, settings.error_budget)
            self._tuner.measure_link()
        names = ("encode", "send", "sum", "gather", "decode")
        if wires.local_in:
            names = ("local_sum", *names, "local_gather")
        self._stages = Stages(names)

    def _send_with(self, p: _Parameter, coder: Coder | PlainCoder) -> None:
        """From now on; with all that follows from the coder."""
        assert self._wires
        n, algorithm = self._wires.send.size, self.settings.algorithm
        p.coder = coder
        if coder.recipe not in self._seconds:
            self._seconds[coder.recipe] = second_coder(coder, n, self.threads)
        p.second = self._seconds[coder.recipe]
        p.gather = gather_is_smaller(coder, n) if algorithm == "auto" else algorithm == "gather"

    def _take_over(self, choices: Mapping[str, str]) -> None:
        """Choices of recipes by parameter, of the tuner or of a checkpoint."""
        for name, recipe in choices.items():
            p = self._parameters[name]
            if p.coder.recipe != recipe and not p.matrix:
                coder = PlainCoder() if recipe == "none" else self._coder(recipe)
                p.feedback = self._feedback(coder)
                p.sum_residuals = {}
                self._send_with(p, coder)

    def _feedback(self, coder: Coder | PlainCoder) -> bool:
        wanted = self.settings.error_feedback
        return not coder.lossless and (coder.wants_feedback if wanted is None else wanted)

    def _agree(self, model: DistributedDataParallel) -> None:
        """Finds out at once whether ranks have other settings or another model."""
        words = [(n, tuple(p.shape), p.dtype, p.requires_grad) for n, p in _named_parameters(model)]
        model_ = hashlib.sha256(repr(words).encode()).hexdigest()
        mine = {**dataclasses.asdict(self.settings), "model": model_}
        agreement.check_alike(mine, self._group)

    # ---- the hook ----

    @property
    def watches(self) -> bool:
        """Whether residuals are compared with gradients in this step; it costs two passes."""
        return self.step <= self.settings.warmup_steps + 3 or self.step % 64 == 0

    def _begin_step(self) -> None:
        self.step += 1
        self.counts.steps += 1
        self._current = _Step()
        if self._tuner and self._tuner.begin_step():
            self._take_over({choice.name: choice.recipe for choice in self._tuner.choices})
        if self.settings.on_nonfinite == "skip":
            for p in self._parameters.values():
                p.backup = p.saved()

    def _hook(self, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        self._check_open()
        buffer = bucket.buffer()
        if bucket.index() == 0:
            self._begin_step()
        step = self._current
        in_backward = torch._C._current_graph_task_id() >= 0
        if bucket.is_last() and in_backward:
            _after_backward(step.check)
        step.add(bucket.is_last())
        future = self._exchange(bucket, buffer, step)
        if not in_backward:  # DDP's join, of a rank without data, which looks at no error
            future.wait()
            if bucket.is_last():
                step.check()
        return future

    def _exchange(
        self, bucket: dist.GradBucket, buffer: torch.Tensor, step: _Step
    ) -> torch.futures.Future[torch.Tensor]:
        if self._nothing:
            future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
            future.set_result(buffer)
            return future
        if self._stages is None or self.step <= self.settings.warmup_steps or not _fits(buffer):
            return self._plain(bucket, buffer, step)
        if self._tuner and self._tuner.plain:
            if self._tuner.samples:
                self._sample(self._tuner, bucket, buffer)
            return self._plain(bucket, buffer, step)
        return self._compressed(bucket, buffer, step)

    def _plain(
        self, bucket: dist.GradBucket, buffer: torch.Tensor, step: _Step
    ) -> torch.futures.Future[torch.Tensor]:
        """PyTorch's own all-reduce, as without a hook."""
        self.counts.plain_bytes += _n_bytes(buffer)
        factor = 1 / dist.get_world_size(self._group)  # as DDP without a hook, to the bit
        # The values of a sparse gradient may be memory of another one that is still on its way.
        buffer = buffer * factor if buffer.is_sparse else buffer.mul_(factor)
        names = [self._by_id[id(tensor)].name for tensor in bucket.parameters()]

        def finish(done: torch.futures.Future[Any]) -> torch.Tensor:
            result = buffer
            try:
                result = done.value()[0]
                if self.settings.on_nonfinite != "pass" and not _is_finite(result):
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
    ) -> list[tuple[_Parameter, torch.Tensor]]:
        """The parameters of a bucket, and which of its values are theirs: one behind the other.
        (`bucket.gradients()` is wrong for complex ones: it takes half of their numbers.)"""
        parameters = [self._by_id[id(tensor)] for tensor in bucket.parameters()]
        sizes = [p.n for p in parameters]
        if sum(sizes) != values.numel():
            raise ParameterError(
                f"a bucket of {values.numel()} values has parameters of {sum(sizes)}: this PyTorch "
                f"({torch.__version__}) arranges buckets in a way that wirepress does not know"
            )
        return list(zip(parameters, values.split(sizes), strict=True))

    def _compressed(
        self, bucket: dist.GradBucket, buffer: torch.Tensor, step: _Step
    ) -> torch.futures.Future[torch.Tensor]:
        host, fetch = _on_host(buffer)
        jobs: list[Callable[[Callable[[BaseException | None], None]], Job]] = []
        pieces: dict[bool, list[Piece]] = {True: [], False: []}
        matrices: list[powersgd.Matrix] = []
        for p, values in self._slices(bucket, host):
            if p.matrix:
                matrices.append(self._matrix(p, values))
            elif p.n:
                self._clip(p, values)
                pieces[p.gather] += self._pieces(p, values)
        assert self._wires
        wires, counts = self._wires, self.counts
        for gather, some in pieces.items():
            for part in _partitions(some, self.settings.partition):
                jobs.append(
                    lambda finished, part=part, gather=gather: CodedMean(
                        wires, part, counts, gather=gather, finished=finished
                    )
                )
        if matrices:
            jobs.append(lambda finished: powersgd.LowRankMean(wires, matrices, counts, finished))
        return self._submit(jobs, buffer, host, fetch, step)

    def _submit(
        self,
        jobs: Sequence[Callable[[Callable[[BaseException | None], None]], Job]],
        buffer: torch.Tensor,
        host: torch.Tensor,
        fetch: Callable[[], None],
        step: _Step,
    ) -> torch.futures.Future[torch.Tensor]:
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
            try:
                for found in errors:
                    self._act(found, host, step)
                fetch()
            except BaseException as raised:
                step.note(raised)
            self._finish_bucket(step)
            future.set_result(buffer)

        assert self._stages
        if not jobs:
            finished(None)
        for job in jobs:
            self._stages.submit(job(finished))
        return future

    def _finish_bucket(self, step: _Step) -> None:
        """After the last one of a step that is skipped, all is as before it."""
        if not step.finish_one():
            return
        if step.lost:
            self.counts.skipped_steps += 1
            for p in self._parameters.values():
                p.load(p.backup)
        for p in self._parameters.values():
            p.backup = {}

    def _act(self, error: BaseException, host: torch.Tensor, step: _Step) -> None:
        """On what a rank found, the same on all; anything else is raised."""
        if not isinstance(error, Flagged):
            host.fill_(float("nan"))
            raise error
        p = self._parameters[error.name]
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
            self._send_with(p, PlainCoder())

    def _act_not_finite(self, names: Sequence[str], where: str, step: _Step) -> None:
        if self.settings.on_nonfinite == "raise":
            some = " or ".join(f'"{name}"' for name in names[:3]) + " ..." * (len(names) > 3)
            raise FloatingPointError(f"the gradient of {some} is not finite on {where}")
        step.lost = True

    def _clip(self, p: _Parameter, values: torch.Tensor) -> None:
        """Local gradient clipping of DGC, by parameter. The paper clips what a rank adds to the
        mean, g / ranks, at clip / sqrt(ranks): the norm of independent parts of a mean of norm
        clip."""
        if p.clip is not None:
            most = p.clip * dist.get_world_size(self._group) ** 0.5
            norm = float(torch.linalg.vector_norm(values))
            if norm > most:
                values.mul_(most / norm)

    def _pieces(self, p: _Parameter, values: torch.Tensor) -> list[Piece]:
        assert self._wires
        n_owners = self._wires.send.size
        n_local = self._wires.local_in.size if self._wires.local_in else 1
        coder = p.coder
        if p.ramp:
            level = (self.step - 1) * len(p.ramp) // max(self.settings.ramp_steps, 1)
            coder = p.ramp[level] if level < len(p.ramp) else coder
        return [
            _GradientPiece(
                p.name,
                values[start:end],
                coder,
                (p.number + number // n_local) % n_owners,
                p.second,
                (p.number + number) % n_local,
                _seed(self.settings.seed, self.step, p.number, number, self._wires.rank),
                p,
                start,
                self,
            )
            for number, (start, end) in enumerate(p.pieces(n_owners * n_local))
        ]

    def _matrix(self, p: _Parameter, values: torch.Tensor) -> powersgd.Matrix:
        assert p.matrix is not None
        if p.q is None:
            seed = self.settings.seed + p.number
            p.q = powersgd.first_q(p.matrix[1], powersgd.rank_of(p.method), seed)
        if p.feedback and p.residual is None:
            p.residual = torch.zeros(p.matrix)
        if p.residual is not None and self.settings.feedback_decay != 1:
            p.residual.mul_(self.settings.feedback_decay)
        watched = self.settings.on_nonfinite != "pass"
        return powersgd.Matrix(p.name, values.view(p.matrix), p.residual, p.q, watched)

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
        for p in self._parameters.values():
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
        levels), `ratio` is bytes of gradients by bytes of frames.
        """
        counts = dataclasses.asdict(self.counts)
        coded = counts["coded_bytes"]
        return {
            **counts,
            "ratio": counts["raw_bytes"] / coded if coded else 1.0,
            "sent_bytes": self._wires.sent if self._wires else 0,
            "sent_bytes_in_host": self._wires.sent_locally if self._wires else 0,
            "seconds": dict(self._stages.seconds) if self._stages else {},
        }

    def choices(self) -> dict[str, str]:
        """How the gradient of each parameter that is trained is sent, by its name; "none": as it
        is, because of the settings, its size or its type."""
        return {p.name: self._choice(p) for p in self._parameters.values() if p.trained}

    def _choice(self, p: _Parameter) -> str:
        if self._nothing:
            return "noop"
        return p.method if p.matrix else p.coder.recipe

    def with_momentum(self) -> set[str]:
        """Names of the parameters whose gradients arrive with momentum, by DGC: the optimizer
        shall add none to these."""
        return {p.name for p in self._parameters.values() if p.momentum}

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
        residuals = {}
        for p in self._parameters.values():
            if entry := p.saved():
                residuals[p.name] = entry
        return {
            "format": _FORMAT,
            "settings": dataclasses.asdict(self.settings),
            "rank": dist.get_rank(self._group),
            "world_size": dist.get_world_size(self._group),
            "step": self.step,
            "choices": self.choices(),
            "residuals": residuals,
        }

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
        if problem := agreement.first_problem(self._problem(mine), self._group):
            raise ParameterError(problem)
        differ = agreement.first_problem(self._difference(mine), self._group)
        if differ and strict:
            raise ParameterError(differ)
        agreement.check_alike({"the saved step": mine["step"]}, self._group)
        self.step = int(mine["step"])
        residuals = {} if differ else mine["residuals"]
        if not differ:
            self._take_over(mine["choices"])
        for p in self._parameters.values():
            p.load(residuals.get(p.name, {}))

    def _problem(self, saved: Mapping[str, Any]) -> str:
        """What makes a saved state unusable; "": nothing."""
        if not saved:
            return "the saved state is empty: full_state_dict gives it on rank 0 only"
        if saved.get("format") != _FORMAT:
            return f"not a state that this version saved: format {saved.get('format')!r}"
        return ""

    def _difference(self, saved: Mapping[str, Any]) -> str:
        """Why its residuals cannot be used here; "": they can."""
        mine = {
            "settings": dataclasses.asdict(self.settings),
            "world_size": dist.get_world_size(self._group),
            "rank": dist.get_rank(self._group),
            "choices": self._allowed(saved["choices"]),
        }
        differ = [
            key for key, value in mine.items() if _plain_data(saved[key]) != _plain_data(value)
        ]
        if differ == ["rank"]:
            return (
                f"the state was saved by rank {saved['rank']}, and this is rank {mine['rank']}: "
                f"save state_dict() on every rank, each its own, or full_state_dict() on rank 0"
            )
        if differ:
            return (
                f"saved with other {', '.join(differ)}: "
                + "; ".join(f"{key} {saved[key]!r}, now {mine[key]!r}" for key in differ[:2])
                + ". strict=False drops its residuals"
            )
        for name, entry in saved["residuals"].items():
            if not self._parameters[name].takes(entry):
                return f'saved with another shape of "{name}". strict=False drops its residuals'
        return ""

    def _allowed(self, saved: Mapping[str, str]) -> dict[str, str]:
        """What `choices` may have been: of auto any, and none after an expansion."""
        plain = self.settings.on_expansion == "plain"
        allowed = {}
        for p in filter(lambda p: p.trained, self._parameters.values()):
            was = saved.get(p.name, "")
            free = p.fits and was and (p.method == "auto" or (plain and was == "none"))
            allowed[p.name] = was if free else self._first_choices[p.name]
        return allowed


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
        method: a recipe of codecs ("int8", "onebit", "terngrad+zstd", "topk:ratio=0.01", "planes";
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
        partition: values of a bucket that pass the pipeline at once.
        on_nonfinite: NaN or infinity in a gradient: "pass" as the codec does (they arrive as NaN),
            "skip": the whole bucket becomes NaN on all ranks, so that a GradScaler skips the
            step, and residuals go back to before it (they are copied for that in every step);
            "raise": FloatingPointError with the name comes out of `backward` on all ranks.
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
    model.register_comm_hook(state, _call)
    return state


def _call(state, bucket):  # type: ignore[no-untyped-def]
    """Without annotations, for PyTorch compares them, which here are strings, with its types."""
    return state._hook(bucket)


def _threads() -> int:
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return max(1, min(4, len(os.sched_getaffinity(0)) // max(ranks, 1)))


def _fits(values: torch.Tensor) -> bool:
    """Whether such gradients, or buckets, are compressed."""
    dtype = values.dtype.to_real() if values.is_complex() else values.dtype
    return not values.is_sparse and dtype in _DTYPES and values.device.type in ("cpu", "cuda")


def _n_reals(tensor: torch.Tensor) -> int:
    """How many numbers of a bucket are its: complex ones are pairs there."""
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def _n_bytes(buffer: torch.Tensor) -> int:
    return buffer._indices().nbytes + buffer._values().nbytes if buffer.is_sparse else buffer.nbytes


def _is_finite(sums: torch.Tensor) -> bool:
    return bool((sums._values() if sums.is_sparse else sums).isfinite().all())


def _named_parameters(model: DistributedDataParallel) -> Iterator[tuple[str, torch.Tensor]]:
    """Those that DDP may put into buckets, by the names that they have without torch.compile."""
    for name, tensor in model.module.named_parameters():
        if name not in model.parameters_to_ignore:
            yield own_name(name), tensor


def _with_sparse_gradients(model: DistributedDataParallel) -> set[int]:
    """Ids of the parameters whose gradients DDP takes for sparse."""
    kinds = (nn.Embedding, nn.EmbeddingBag)
    modules = [m for m in model.module.modules() if isinstance(m, kinds) and m.sparse]
    return {id(tensor) for module in modules for tensor in module.parameters(False)}


def _after_backward(check: Callable[[], None]) -> None:
    """Calls `check` at the end of the backward pass, after DDP is done with it: what that raises
    comes out of `backward` as it is. (Of an error of a future DDP keeps neither type nor text.)

    Called from the hook for the last bucket, after which DDP queues the end of its own work; so
    that a callback that this one queues comes after it.
    """
    queue = torch.autograd.Variable._execution_engine.queue_callback
    queue(lambda: queue(check))


def _on_host(buffer: torch.Tensor) -> tuple[torch.Tensor, Callable[[], None]]:
    """The bucket as float32 in CPU memory, and what brings it back; the bucket itself where it is
    that already. A copy from a device is waited for here, which the backward pass on it is not."""
    if buffer.dtype == torch.float32 and buffer.device.type == "cpu":
        return buffer, lambda: None
    host = torch.empty(buffer.shape, dtype=torch.float32, pin_memory=buffer.is_cuda)
    host.copy_(buffer)

    def fetch() -> None:
        buffer.copy_(host)
        if buffer.is_cuda:
            torch.cuda.current_stream(buffer.device).synchronize()

    return host, fetch


def _partitions(pieces: Sequence[Piece], most: int) -> list[list[Piece]]:
    """Runs of pieces of at most so many values, a larger piece alone."""
    parts: list[list[Piece]] = []
    room = 0
    for piece in pieces:
        n = piece.values.numel()
        if not parts or n > room:
            parts.append([])
            room = most
        parts[-1].append(piece)
        room -= n
    return parts


def _seed(*numbers: int) -> int:
    """63 bits that depend on all numbers (SplitMix64)."""
    mixed = 0
    for number in numbers:
        mixed = (mixed ^ number) + 0x9E3779B97F4A7C15 & (1 << 64) - 1
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
        mixed ^= mixed >> 31
    return mixed >> 1


def _plain_data(value: Any) -> Any:
    """Tuples as lists, as a checkpoint may have made them."""
    if isinstance(value, Mapping):
        return {key: _plain_data(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain_data(inner) for inner in value]
    return value
