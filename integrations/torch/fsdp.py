# SPDX-License-Identifier: Apache-2.0
"""FSDP2 (`fully_shard`) with gradients, and parameters if wished, in compressed form.

PyTorch lets a module bring its own reduce-scatter and all-gather. Gradients: every rank encodes a
part for each owner; the owner adds its own part, exact, and what came, by rank. Parameters: every
rank encodes its shard once for all. So all ranks see the same bits, in every run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
import wirepress
from torch import nn
from wirepress.errors import ParameterError, UnsupportedError, WirepressError
from wirepress.torch import agreement, memory
from wirepress.torch.coder import Coder
from wirepress.torch.compiled import own_name
from wirepress.torch.fsdp_delta import Copies, Turns
from wirepress.torch.group.options import Traffic
from wirepress.torch.memory import FLOATS, GRADIENTS, all_finite, within_reach
from wirepress.torch.packer import AUTO, Packer
from wirepress.torch.recipes import check_recipe, settled
from wirepress.torch.transport import Opener, Post

try:
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.fsdp._fully_shard._fsdp_api import AllGather, ReduceScatter
except ImportError:  # pragma: no cover (other versions of PyTorch)
    FSDPModule = AllGather = ReduceScatter = object
_NEEDED = (
    "set_custom_reduce_scatter",
    "set_custom_all_gather",
    "set_force_sum_reduction_for_comms",
)

NONE = "none"
DELTA = "delta"
_FORMAT = 1  # of state_dict


@dataclasses.dataclass(frozen=True)
class FsdpSettings:
    """What `compress_fsdp` was called with. All ranks must have the same."""

    gradients: str = "int8"
    parameters: str = NONE
    error_feedback: bool = False
    threshold: int = 64 << 10
    on_nonfinite: str = "pass"
    trials: bool = True


def _finish_queued(tensor: torch.Tensor) -> None:
    """Waits for what is queued on the tensor's GPU: a clock must see work, not its launch."""
    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()


class _Pass:
    """A backward pass in which gradients that are not finite are looked for."""

    def __init__(self, end: weakref.ref[Callable[[], None]]) -> None:
        self.end = end  # what autograd calls at its end, and lets go of where an error ends it
        self.backup: dict[str, torch.Tensor | None] = {}  # residuals before it, by unit
        self.found: list[tuple[str, int]] = []  # units and ranks
        self.partial = False  # a unit lies on some ranks only: other ranks may have found more


class FsdpState:
    """What `compress_fsdp` returns: settings, residuals and statistics of one model."""

    def __init__(self, settings: FsdpSettings, threads: int, model: str = "") -> None:
        self.settings = settings
        self._model = model  # what tells it from others
        self.residuals: dict[str, torch.Tensor] = {}
        """What the gradients of a unit lacked, by its name: float32, a row for each owner."""
        self.threads = threads
        self.copies: list[Copies] = []
        self.ways: dict[str, str] = {}  # of the parameters, by unit
        self._traffic = {"gradients": Traffic(), "parameters": Traffic()}
        self._posts: dict[tuple[int, ...], Post] = {}
        self._closed = False
        self._pass: _Pass | None = None
        rank, size = dist.get_rank(), dist.get_world_size()
        self.packers = {
            what: Packer(recipe, threads=threads, seed=rank, seed_step=size)
            for what, recipe in (
                ("gradients", settings.gradients),
                ("parameters", _recipe(settings.parameters)),
            )
            if recipe != NONE
        }

    def choices(self) -> dict[str, str]:
        """With parameters="delta", how those of each unit go: "delta", or "plain", by PyTorch's own
        all-gather, where that was found to be faster."""
        return dict(self.ways)

    def post(self, group: dist.ProcessGroup) -> Post:
        """Messages of bytes between the ranks of `group`, whatever that itself can carry."""
        self._check_open()
        ranks = tuple(dist.get_process_group_ranks(group))
        if ranks not in self._posts:
            self._posts[ranks] = Opener(group).open([range(len(ranks))])
        return self._posts[ranks]

    def close(self) -> None:
        """Takes down its process groups and frees the residuals; every rank calls it, between
        steps. After it the model's passes raise ParameterError where they would compress, for
        PyTorch lets go of no collectives. `statistics` still answers."""
        self._closed = True
        for post in self._posts.values():
            post.close()
        for packer in self.packers.values():
            packer.close()
        for copies in self.copies:
            copies.close()
        self._posts, self.residuals, self.copies = {}, {}, []

    def _check_open(self) -> None:
        if self._closed:
            raise ParameterError(
                "this state was closed, and its model cannot exchange anything any more: wrap the "
                "module by fully_shard anew"
            )

    def count(self, what: str, raw: int, wire: int, compressed: bool) -> None:
        """Adds one operation of a unit."""
        traffic = self._traffic[what]
        traffic.calls += 1
        traffic.compressed_calls += compressed
        traffic.raw_bytes += raw
        traffic.wire_bytes += wire

    def statistics(self) -> dict[str, Traffic]:
        """What this rank sent of "gradients" and of "parameters"."""
        return {what: dataclasses.replace(each) for what, each in self._traffic.items()}

    def residual(self, unit: str, parts: torch.Tensor) -> torch.Tensor | None:
        """What is left of earlier steps, beside the gradient; from zero where the unit has another
        size now."""
        if not self.settings.error_feedback:
            return None
        found = self.residuals.get(unit)
        kept = None if found is None or found.shape != parts.shape else found.view(-1)
        made = memory.beside(parts, kept, parts.numel()).view(parts.shape)
        self.residuals[unit] = made
        return made

    def watch(self, unit: str, ranks: int) -> _Pass | None:
        """Notes the residual of a unit, which `ranks` ranks share, before this backward pass
        changes it. Returns the notes of the pass; None: nothing is noted."""
        if self.settings.on_nonfinite == "pass":
            return None
        if self._pass is not None and self._pass.end() is None:  # that pass ended by an error
            self._restore(self._pass)
            self._pass = None
        if self._pass is None:

            def end() -> None:
                self._end_pass()

            self._pass = _Pass(weakref.ref(end))
            # after FSDP's own, which was queued when the pass began
            torch.autograd.Variable._execution_engine.queue_callback(end)
        kept = self.residuals.get(unit)
        self._pass.backup[unit] = None if kept is None else kept.clone()
        self._pass.partial |= ranks < dist.get_world_size()
        return self._pass

    def _end_pass(self) -> None:
        ended, self._pass = self._pass, None
        if ended is None:
            return
        if ended.partial:  # of replicas, all drop the step that one of them cannot use
            everyone = self.post(dist.group.WORLD).all_gather_object(ended.found[:1])
            ended.found = [each for found in everyone for each in found]
        if not ended.found:
            return
        self._restore(ended)
        if self.settings.on_nonfinite == "raise":
            unit, rank = ended.found[0]
            raise FloatingPointError(f'the gradient of unit "{unit}" is not finite on rank {rank}')

    def _restore(self, ended: _Pass) -> None:
        """Residuals are what they were before the pass."""
        for unit, residual in ended.backup.items():
            if residual is None:
                self.residuals.pop(unit, None)
            else:
                self.residuals[unit] = residual

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint. Residuals belong to a rank: every rank saves its own, or rank 0
        `full_state_dict`."""
        self._check_open()
        return {
            "format": _FORMAT,
            "rank": dist.get_rank(),
            "world_size": dist.get_world_size(),
            "settings": self._saved_settings(),
            "model": self._model,
            "seeds": {what: packer.seed for what, packer in self.packers.items()},
            "residuals": {
                unit: tensor.to("cpu", copy=True) for unit, tensor in self.residuals.items()
            },
        }

    def full_state_dict(self) -> dict[str, Any]:
        """The states of all ranks in one, on rank 0; {} on the others.

        A collective call, for programs that save on one rank and load the same file on all
        (`FullState` gives them that). Rank 0 needs memory for the residuals of all ranks: with
        error feedback 4 bytes for each value of the whole gradient and rank.
        """
        return agreement.full(self.state_dict())

    def load_state_dict(self, saved: Mapping[str, Any], *, strict: bool = True) -> None:
        """Takes what `state_dict` gave on the same rank of as many, or `full_state_dict`.

        A collective call. With `strict=False`, the residuals of another number of ranks, or of
        other settings, are let go: they begin at zero, which costs no more than what one step
        dropped.

        Raises:
            ParameterError: it does not fit, on any rank; then no rank has changed anything.
        """
        self._check_open()
        mine = agreement.own_part(saved, dist.get_rank())
        if problem := agreement.first_problem(self._problem(mine)):
            raise ParameterError(problem)
        differ = agreement.first_problem(self._difference(mine))
        if differ and strict:
            raise ParameterError(differ)
        self.residuals = {}
        if differ:
            return
        for unit, tensor in mine["residuals"].items():
            self.residuals[unit] = tensor.clone()
        for what, seed in mine["seeds"].items():
            self.packers[what].seed = seed

    def _problem(self, saved: Mapping[str, Any]) -> str:
        """What makes a saved state unusable; "": nothing."""
        if not saved:
            return "the saved state is empty: full_state_dict gives it on rank 0 only"
        if saved.get("format") != _FORMAT:
            return f"a state of format {saved.get('format')!r}, not {_FORMAT}"
        return ""

    def _saved_settings(self) -> dict[str, Any]:
        """The settings that residuals depend on."""
        settings = dataclasses.asdict(self.settings)
        del settings["trials"]
        return settings

    def _difference(self, saved: Mapping[str, Any]) -> str:
        """Why its residuals cannot be used here; "": they can."""
        mine = {
            "settings": self._saved_settings(),
            "model": self._model,
            "world_size": dist.get_world_size(),
            "rank": dist.get_rank(),
        }
        for key, value in mine.items():
            if saved[key] != value:
                hint = (
                    "save state_dict() on every rank, each its own, or full_state_dict() on rank 0"
                    if key == "rank"
                    else "strict=False begins without residuals"
                )
                return f"the state was saved with {key} {saved[key]!r}, not {value!r}: {hint}"
        return ""


class _Memory:
    """Where FSDP's buffers come from: PyTorch's allocator."""

    def allocate(
        self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        return torch.empty(*size, dtype=dtype, device=device)


class _ReduceScatter(_Memory, ReduceScatter):
    def __init__(self, state: FsdpState, unit: str) -> None:
        self._state, self._unit = state, unit

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> dist.Work | None:
        state, size = self._state, group.size()
        raw = input_tensor.nbytes * (size - 1) // size
        sums = op == dist.ReduceOp.SUM or op == dist.ReduceOp.AVG
        if (
            not sums
            or input_tensor.dtype not in FLOATS
            or input_tensor.nbytes < state.settings.threshold
        ):
            state.count("gradients", raw, raw, False)
            scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
            return scatter(output_tensor, input_tensor, op=op, group=group, async_op=async_op)
        with torch.no_grad():
            post = state.post(group)
            began = post.sent
            ranks = dist.get_process_group_ranks(group)
            total = self._sum(within_reach(input_tensor.detach()).view(size, -1), post, ranks)
            if op == dist.ReduceOp.AVG:
                total.div_(size)
            output_tensor.view(-1).copy_(total)
        state.count("gradients", raw, post.sent - began, True)
        return None

    def _sum(self, parts: torch.Tensor, post: Post, ranks: Sequence[int]) -> torch.Tensor:
        """The sum over `ranks` of the row that this rank owns."""
        packer, dtype = self._state.packers["gradients"], parts.dtype
        watched, flag = self._state.watch(self._unit, len(ranks)), 0
        if watched and not all_finite(parts):
            flag = 1
        residual = None
        if dtype in GRADIENTS and not packer.lossless(dtype):
            residual = self._state.residual(self._unit, parts)
        room = memory.room_on_cpu(packer.bound(parts[0]) * (post.size - 1), parts)
        others = [None if rank == post.rank else part for rank, part in enumerate(parts)]
        rows = None if residual is None else residual.unbind()
        sizes = packer.pack_all(others, room, lossy=True, residuals=rows)
        messages, flags = post.all_to_all(room[: sum(sizes)], sizes, flag)
        wide = dtype if dtype == torch.float64 else torch.float32
        total = memory.room_beside(parts[post.rank], wide).copy_(parts[post.rank])
        came = [message for rank, message in enumerate(messages) if rank != post.rank]
        packer.add_all(came, total, dtype)
        if watched and any(flags):
            watched.found.append((self._unit, ranks[flags.index(1)]))
            total.fill_(float("nan"))
        return total


class _AllGather(_Memory, AllGather):
    def __init__(self, state: FsdpState) -> None:
        self._state = state

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> dist.Work | None:
        state, size = self._state, group.size()
        if size == 1 or input_tensor.nbytes < state.settings.threshold:
            return self._plain(output_tensor, input_tensor, group, async_op)
        with torch.no_grad():
            post = state.post(group)
            began = post.sent
            mine = within_reach(input_tensor.detach())
            self._gather(output_tensor.view(size, -1), mine, post)
        state.count("parameters", input_tensor.nbytes * (size - 1), post.sent - began, True)
        return None

    def _plain(
        self, out: torch.Tensor, values: torch.Tensor, group: dist.ProcessGroup, async_op: bool
    ) -> dist.Work | None:
        raw = values.nbytes * (group.size() - 1)
        self._state.count("parameters", raw, raw, False)
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        return gather(out, values, group=group, async_op=async_op)

    def _gather(self, outs: torch.Tensor, mine: torch.Tensor, post: Post) -> None:
        packer = self._state.packers["parameters"]
        room = memory.room_on_cpu(packer.bound(mine), mine)
        messages, _ = post.all_gather(room[: packer.pack(mine, room, lossy=True)])
        # With loss, this rank too computes with what the others get.
        there = within_reach(outs)
        packer.unpack_all(messages, there.unbind())
        if there is not outs:
            outs.copy_(there)


class _DeltaGather(_AllGather):
    """Sends what changed since the last gather, if that is not slower than to send everything."""

    def __init__(self, state: FsdpState, unit: str) -> None:
        super().__init__(state)
        self._unit = unit
        self._copies: Copies | None = Copies(state.threads)  # None: deltas were slower
        self._turns = Turns(state.settings.trials)
        self._ranks: tuple[int, ...] = ()  # of the first group
        state.copies.append(self._copies)
        state.ways[unit] = DELTA

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> dist.Work | None:
        small = group.size() == 1 or input_tensor.nbytes < self._state.settings.threshold
        if small or self._copies is None or not self._is_usual(group):
            return self._plain(output_tensor, input_tensor, group, async_op)
        if self._turns.over:
            return super().__call__(output_tensor, input_tensor, group, async_op)
        post = self._state.post(group)
        _finish_queued(output_tensor)
        start, plain = time.perf_counter(), self._turns.plain
        if plain:
            self._plain(output_tensor, input_tensor, group, False)
        else:
            super().__call__(output_tensor, input_tensor, group)
        _finish_queued(output_tensor)
        self._turns.note(time.perf_counter() - start)
        if plain and Copies.takes(output_tensor.dtype):
            self._copies.take(output_tensor.view(group.size(), -1))
        if self._turns.over and self._turns.slower(post):
            self._state.ways[self._unit] = "plain"
            self._state.copies.remove(self._copies)
            self._copies.close()
            self._copies = None
        return None

    def _is_usual(self, group: dist.ProcessGroup) -> bool:
        """Whether it has the ranks of the first call. With an integer `reshard_after_forward` the
        backward pass gathers inside of fewer ranks, whose copies would be others."""
        ranks = tuple(dist.get_process_group_ranks(group))
        self._ranks = self._ranks or ranks
        return ranks == self._ranks

    def _gather(self, outs: torch.Tensor, mine: torch.Tensor, post: Post) -> None:
        if self._copies is not None and Copies.takes(mine.dtype):
            self._copies.gather(outs, mine.cpu(), post)
        else:
            super()._gather(outs, mine, post)


def compress_fsdp(
    module: nn.Module,
    gradients: str = "int8",
    *,
    parameters: str = NONE,
    error_feedback: bool | None = None,
    threshold: int = 64 << 10,
    threads: int = 1,
    on_nonfinite: str = "pass",
    trials: bool = True,
) -> FsdpState:
    """Makes the units of an FSDP2 model exchange gradients and parameters in compressed form.

    Call it on all ranks, after `fully_shard` and before the first forward pass.

    Args:
        module: with submodules that `fully_shard` wrapped.
        gradients: recipe for the reduce-scatter; "none": PyTorch's own.
        parameters: recipe for the all-gather; "planes" or another lossless one, or one such as
            "int8", with which forward and backward passes compute with rounded parameters, while
            the shards, which the optimizer updates, stay exact. "delta": without loss, what
            changed since the last gather, so nothing in the backward pass; every rank keeps a copy
            of all parameters as they are gathered, in the memory of its host (2 bytes each in
            bfloat16). "none": PyTorch's own.
        error_feedback: add what one step dropped to the next gradient. It takes 4 bytes for each
            value of the whole gradient, on every rank. None: where the codec needs it (not int8).
        threshold: units with fewer bytes go raw.
        threads: that encode and decode.
        on_nonfinite: NaN or infinity in the gradient of a unit that is compressed: "pass" as the
            codec does; "skip": the unit's whole gradient becomes NaN on all ranks, so that a
            GradScaler skips the step, and at the end of the backward pass all residuals go back to
            before it, on all ranks, replicas too; "raise": FloatingPointError comes out of
            `backward` on all ranks, after residuals went back.
        trials: with "delta", time 16 of the first 20 gathers of each unit, half of them by
            PyTorch's own; a unit whose deltas were slower goes by that and frees its copy.

    Raises:
        ParameterError: no such recipe; nothing was wrapped; it was called before; settings or
            models differ between ranks.
        UnsupportedError: this PyTorch does not let FSDP2 have its own collectives.

    The mean is exact where FSDP's is: FSDP is told to sum and divides itself. With HSDP, sums over
    replicas go by PyTorch's all-reduce, which a process group of the backend wirepress compresses.
    """
    missing = [name for name in _NEEDED if not hasattr(FSDPModule, name)]
    if missing:
        raise UnsupportedError(
            f"PyTorch {torch.__version__} has no FSDPModule.{missing[0]}: FSDP2 cannot be given "
            f"collectives of its own; tested with 2.13.0 and 2.15.0"
        )
    agreement.await_everyone("compress_fsdp", dist.group.WORLD)
    problem, units, settings = "", [], FsdpSettings()
    try:
        if on_nonfinite not in ("pass", "skip", "raise"):
            raise ParameterError(f"on_nonfinite={on_nonfinite!r}: one of 'pass', 'skip', 'raise'")
        feedback = _wants_feedback(gradients) if error_feedback is None else error_feedback
        settings = FsdpSettings(
            settled(gradients), parameters, feedback, threshold, on_nonfinite, trials
        )
        units = list(_units(module))
        Packer(_recipe(parameters) if parameters != NONE else AUTO).close()
        Packer(settings.gradients if gradients != NONE else AUTO).close()
    except (WirepressError, ValueError) as error:
        problem = str(error)
    if problem := agreement.first_problem(problem):
        raise ParameterError(problem)
    state = FsdpState(settings, threads, _agree(settings, units, module))
    for name, unit in units:
        if gradients != NONE:
            _set(name, unit.set_custom_reduce_scatter, _ReduceScatter(state, name))
            unit.set_force_sum_reduction_for_comms(True)
        if parameters != NONE:
            gather = _DeltaGather(state, name) if parameters == DELTA else _AllGather(state)
            _set(name, unit.set_custom_all_gather, gather)
        unit._wirepress = state
    return state


def _recipe(parameters: str) -> str:
    """What messages of parameters are made with; of deltas, where words are too long for them."""
    return AUTO if parameters == DELTA else parameters


def _set(name: str, setter: Any, comm: Any) -> None:
    try:
        setter(comm)
    except ValueError as error:
        raise ParameterError(f'unit "{name}": {error}') from error


def _wants_feedback(recipe: str) -> bool:
    if recipe == NONE:
        return False
    check_recipe(recipe)
    return Coder(recipe).wants_feedback


def _units(module: nn.Module) -> Iterator[tuple[str, Any]]:
    found = [(name, unit) for name, unit in module.named_modules() if isinstance(unit, FSDPModule)]
    if not found:
        raise ParameterError("nothing in this module was wrapped by fully_shard (FSDP2)")
    for name, unit in found:
        if hasattr(unit, "_wirepress"):
            raise ParameterError(f'unit "{name}" is compressed already')
        yield own_name(name), unit


def _agree(settings: FsdpSettings, units: list[tuple[str, Any]], module: nn.Module) -> str:
    """Finds out at once whether ranks have other settings or another model; returns what tells
    this model from others."""
    mine = {
        "version": wirepress.__version__,
        **dataclasses.asdict(settings),
        "units": [name for name, _ in units],
        "parameters of the model": [
            (own_name(n), tuple(p.shape), p.dtype) for n, p in module.named_parameters()
        ],
    }
    agreement.check_alike(mine)
    model = repr((mine["units"], mine["parameters of the model"]))
    return hashlib.sha256(model.encode()).hexdigest()
