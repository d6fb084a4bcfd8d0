# SPDX-License-Identifier: Apache-2.0
"""What each parameter's gradient is sent with, and what is remembered of it."""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from wirepress.errors import ParameterError, WirepressError
from wirepress.torch import powersgd, recipes
from wirepress.torch.coder import PLAIN, AnyCoder, Coder, gather_is_smaller, sum_coder
from wirepress.torch.compiled import own_name
from wirepress.torch.ddp.settings import ALIGN, Settings
from wirepress.torch.memory import GRADIENTS

PIECE = 1 << 20  # most values of a piece


class Parameter:
    """How one parameter's gradient is sent, and what is remembered of it."""

    def __init__(
        self, number: int, name: str, parameter: torch.Tensor, method: str, sparse: bool
    ) -> None:
        self.number, self.name, self.method = number, name, method
        self.n = n_reals(parameter)
        self.trained = parameter.requires_grad
        self.fits = not sparse and fits(parameter)
        self.coder: AnyCoder = PLAIN
        self.sum_coder: AnyCoder = self.coder
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


class Plan:
    """How the gradients of a model are sent: its parameters, each with its coders."""

    def __init__(self, settings: Settings, threads: int) -> None:
        self.settings, self._threads = settings, threads
        self.by_id: dict[int, Parameter] = {}  # of the tensor
        self._coders: dict[str, Coder] = {}
        self._sum_coders: dict[str, AnyCoder] = {}  # by the recipe of what is summed
        self._n_ranks = 0
        self._first_choices: dict[str, str] = {}
        self.bounds: dict[str, int] = {}  # of frames of whole pieces, by recipe

    @property
    def parameters(self) -> Collection[Parameter]:
        return self.by_id.values()

    @functools.cached_property
    def named(self) -> dict[str, Parameter]:
        return {p.name: p for p in self.parameters}

    def prepare(self, model: DistributedDataParallel) -> str:
        """Sets up the parameters; returns what is wrong with the settings, "" for nothing."""
        try:
            self.settings.check()
            if without_left_behind(model):
                raise ParameterError(
                    "the model cannot take a hook: it has one, and PyTorch takes no second"
                )
            named = list(named_parameters(model))
            self._check_methods([name for name, _ in named])
            sparse = with_sparse_gradients(model)
            for number, (name, tensor) in enumerate(named):
                p = Parameter(number, name, tensor, self._method(name), id(tensor) in sparse)
                self.by_id[id(tensor)] = p
                self._choose(p, tensor)
            self._first_choices = self.choices()
            later = ["bf16"] if any(p.method == "auto" for p in self.parameters) else []
            known = [*self._coders, *later]
            self.bounds = {recipe: self._coder(recipe).bound(PIECE) for recipe in known}
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
        methods = (self.settings.method, *(method for _, method in rules))
        if "auto" in methods and any(recipes.first_codec(each) == "dgc" for each in methods):
            raise ParameterError("dgc is not for models with auto, whose plain steps lack momentum")
        for method in methods:
            if method == "noop" and method != self.settings.method:
                raise ParameterError("noop is for a whole model: no rule can choose it")
            if recipes.first_codec(method) == "powersgd":
                powersgd.rank_of(method)
            elif method not in ("none", "noop", "auto"):
                recipes.check_recipe(method)
                self._coder(recipes.settled(method))

    def _method(self, name: str) -> str:
        for pattern, method in self.settings.rules:
            if fnmatch.fnmatchcase(name, pattern):
                return method
        return self.settings.method

    def _choose(self, p: Parameter, tensor: torch.Tensor) -> None:
        """The coder, or the matrix, of a parameter."""
        settings, method = self.settings, p.method
        dgc = recipes.first_codec(method) == "dgc"
        if dgc and settings.warmup_steps:
            raise ParameterError("dgc is warmed up by ramp_steps: plain steps lack its momentum")
        if not p.fits:
            return
        if dgc:  # of small ones, too: the optimizer has none
            p.momentum, p.clip = settings.momentum, settings.clip
        if method in ("none", "noop", "auto") or p.n < settings.min_values:
            return
        if recipes.first_codec(method) == "powersgd":
            rank = powersgd.rank_of(method)
            p.matrix = powersgd.shape_of(tuple(tensor.shape), p.n, rank)
            p.feedback = settings.error_feedback is not False
            return
        p.coder = self._coder(recipes.settled(method))
        p.feedback = self._feedback(p.coder)
        if dgc:
            self._choose_dgc(p)

    def _choose_dgc(self, p: Parameter) -> None:
        settings, method = self.settings, p.method
        if not p.feedback:
            raise ParameterError(
                "dgc is error feedback with momentum: use topk or graddrop without"
            )
        ratio, share = recipes.parameter(method, "ratio"), 0.25
        while settings.ramp_steps and share > ratio:  # 75 %, 93.75 %, ... sparse, as in the paper
            p.ramp.append(self._coder(f"dgc:ratio={share}"))
            share /= 4

    def _coder(self, recipe: str) -> Coder:
        if recipe not in self._coders:
            self._coders[recipe] = Coder(
                recipe, threads=self._threads, checksum=self.settings.checksum
            )
        return self._coders[recipe]

    def open(self, n_ranks: int) -> None:
        """Says how many ranks exchange compressed gradients, on which the choices depend."""
        self._n_ranks = n_ranks
        for p in self.parameters:
            self.send_with(p, p.coder)

    def send_with(self, p: Parameter, coder: AnyCoder) -> None:
        """From now on; with all that follows from the coder."""
        n, algorithm = self._n_ranks, self.settings.algorithm
        p.coder = coder
        if coder.recipe not in self._sum_coders:
            self._sum_coders[coder.recipe] = sum_coder(coder, n, self._threads)
        p.sum_coder = self._sum_coders[coder.recipe]
        p.gather = gather_is_smaller(coder, n) if algorithm == "auto" else algorithm == "gather"

    def take_over(self, choices: Mapping[str, str]) -> None:
        """Choices of recipes by parameter, of the tuner or of a checkpoint."""
        for name, recipe in choices.items():
            p = self.named[name]
            if p.coder.recipe != recipe and not p.matrix:
                coder = PLAIN if recipe == "none" else self._coder(recipe)
                p.feedback = self._feedback(coder)
                p.sum_residuals = {}
                self.send_with(p, coder)

    def _feedback(self, coder: AnyCoder) -> bool:
        wanted = self.settings.error_feedback
        return not coder.lossless and (coder.wants_feedback if wanted is None else wanted)

    def choices(self) -> dict[str, str]:
        """See `State.choices`."""
        return {p.name: self._choice(p) for p in self.parameters if p.trained}

    def _choice(self, p: Parameter) -> str:
        if self.settings.method == "noop":
            return "noop"
        return p.method if p.matrix else p.coder.recipe

    def allowed(self, saved: Mapping[str, str]) -> dict[str, str]:
        """What `choices` may have been: of auto any, and none after an expansion."""
        plain = self.settings.on_expansion == "plain"
        allowed = {}
        for p in filter(lambda p: p.trained, self.parameters):
            was = saved.get(p.name, "")
            free = p.fits and was and (p.method == "auto" or (plain and was == "none"))
            allowed[p.name] = was if free else self._first_choices[p.name]
        return allowed


class LeftBehind:
    """Stands in a pickled or copied model for the state of its hook, which stayed behind."""


def without_left_behind(model: DistributedDataParallel) -> list[Any]:
    """The model's hooks that do something."""
    return [hook for hook in model._comm_hooks if not isinstance(hook[1], LeftBehind)]


def fits(values: torch.Tensor) -> bool:
    """Whether such gradients, or buckets, are compressed."""
    dtype = values.dtype.to_real() if values.is_complex() else values.dtype
    return not values.is_sparse and dtype in GRADIENTS and values.device.type in ("cpu", "cuda")


def n_reals(tensor: torch.Tensor) -> int:
    """How many numbers of a bucket are its: complex ones are pairs there."""
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def named_parameters(model: DistributedDataParallel) -> Iterator[tuple[str, torch.Tensor]]:
    """Those that DDP may put into buckets, by the names that they have without torch.compile."""
    for name, tensor in model.module.named_parameters():
        if name not in model.parameters_to_ignore:
            yield own_name(name), tensor


def with_sparse_gradients(model: DistributedDataParallel) -> set[int]:
    """Ids of the parameters whose gradients DDP takes for sparse."""
    kinds = (nn.Embedding, nn.EmbeddingBag)
    modules = [m for m in model.module.modules() if isinstance(m, kinds) and m.sparse]
    return {id(tensor) for module in modules for tensor in module.parameters(False)}
