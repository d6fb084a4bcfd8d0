# SPDX-License-Identifier: Apache-2.0
"""What the adapters for training frameworks have in common: finding the DDP model, states of ranks
in checkpoints, a sentence about what was saved. Imports no framework."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from wirepress.errors import ParameterError
from wirepress.torch.agreement import gathered
from wirepress.torch.ddp import State

SINGLE = (
    "there is one process, which exchanges no gradients: start several (torchrun "
    "--nproc-per-node N, or the launcher of your framework), or leave wirepress out"
)
SHARDED = (
    "the model is sharded, and FSDP exchanges no whole gradients. With FSDP2 call "
    "wirepress.torch.compress_fsdp after fully_shard; with FSDP1 use a process group of the "
    'backend "wirepress"'
)


def ddp_model(model: nn.Module) -> DistributedDataParallel:
    """The DistributedDataParallel in what a framework prepared, which torch.compile may have
    wrapped. Raises ParameterError that says what the model is instead."""
    inner = getattr(model, "_orig_mod", model)
    if isinstance(inner, DistributedDataParallel):
        return inner
    if any(type(part).__name__.startswith(("FSDP", "FullySharded")) for part in inner.modules()):
        raise ParameterError(SHARDED)
    if not dist.is_initialized() or dist.get_world_size() == 1:
        raise ParameterError(SINGLE)
    raise ParameterError(
        f"the model is {type(inner).__name__}; wirepress compresses the gradients of "
        f"DistributedDataParallel"
    )


def agree(problem: str, group: Any) -> None:
    """Raises ParameterError on all ranks where one has a problem; a collective call."""
    _refuse(gathered(problem, group))


def _refuse(problems: Sequence[str]) -> None:
    for rank, text in enumerate(problems):
        if text:
            raise ParameterError(text if problems.count(text) > 1 else f"rank {rank}: {text}")


# ---- states of all ranks in one object, for frameworks that save on rank 0 --------------------


def gather(state: State, group: Any) -> list[dict[str, Any]] | None:
    """The states of all ranks, on rank 0 of the group; None on the others. A collective call."""
    rank, n = dist.get_rank(group), dist.get_world_size(group)
    states: list[Any] | None = [None] * n if rank == 0 else None
    dist.gather_object(state.state_dict(), states, dst=dist.get_global_rank(group, 0), group=group)
    return states


def load(state: State, saved: Mapping[str, Any] | str, group: Any, strict: bool) -> None:
    """Goes on from this rank's saved state; a collective call.

    Args:
        saved: the state, or why there is none.
        strict: False: where a state does not fit, or ranks have none, all begin anew.

    Raises:
        ParameterError: on all ranks, where one's state does not fit.
    """
    problem = saved if isinstance(saved, str) else ""
    problems = gathered(problem, group)
    if strict:
        _refuse(problems)
    if any(problems):
        return  # on all: ranks at different steps would exchange different things
    assert not isinstance(saved, str)
    try:
        state.load_state_dict(saved, strict=strict)
    except ParameterError as error:
        problem = str(error)
    agree(problem, group)


# ---- a file for each rank --------------------------------------------------------------------


def file_of(folder: str | os.PathLike[str], rank: int, number: int = 0) -> Path:
    """Where a rank's state lies in a checkpoint's folder; `number`: of the model, where a program
    has several."""
    return Path(folder) / f"wirepress_{number}_rank_{rank}.pt"


def save_file(state: State, folder: str | os.PathLike[str], group: Any, number: int = 0) -> None:
    """Writes this rank's state; whole, or not at all. A collective call.

    Raises:
        ParameterError: on all ranks, where one could not write.
    """
    path = file_of(folder, dist.get_rank(group), number)
    problem = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        torch.save(state.state_dict(), part)
        part.replace(path)
    except (OSError, RuntimeError) as error:  # torch.save: RuntimeError where a disk is full
        problem = f"{path} could not be written: {error}"
    agree(problem, group)


def load_file(
    state: State, folder: str | os.PathLike[str], group: Any, number: int = 0, strict: bool = True
) -> None:
    """Goes on from what `save_file` wrote on the same rank; a collective call. As `load`."""
    path = file_of(folder, dist.get_rank(group), number)
    saved: Mapping[str, Any] | str
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        saved = (
            f"{folder} has no {path.name}: it was saved without wirepress, or by fewer ranks. "
            f"strict=False begins with nothing remembered"
        )
    except Exception as error:  # of many kinds, as files may hold anything
        first = (str(error).splitlines() or ["no more is known"])[0]
        saved = f"{path} cannot be read: {type(error).__name__}: {first}"
    if not isinstance(saved, (str, dict)):
        saved = f"{path} is no state of wirepress: it holds {type(saved).__name__}"
    load(state, saved, group, strict)


def own_of(states: Sequence[Any], group: Any, strict: bool) -> Mapping[str, Any] | str:
    """This rank's of what `gather` gave, or why there is none."""
    n = dist.get_world_size(group)
    if len(states) != n and strict:
        return (
            f"the checkpoint was saved by {len(states)} ranks, now there are {n}. strict=False "
            f"begins with nothing remembered"
        )
    return states[dist.get_rank(group) % len(states)]  # type: ignore[no-any-return]


# ---- what it was good for ----------------------------------------------------------------------


def summary(state: State) -> str:
    """One sentence: how many bytes of gradients this rank sent as how many."""
    seen = state.statistics()
    said = (
        f"wirepress {state.settings.method}: {seen['steps']} steps, {_size(seen['raw_bytes'])} of "
        f"gradients as {_size(seen['coded_bytes'])}, {seen['ratio']:.2f} times smaller"
    )
    if seen["plain_bytes"]:
        said += f"; {_size(seen['plain_bytes'])} went uncompressed"
    return said


def metrics(state: State) -> dict[str, float]:
    """Numbers for a framework's logger."""
    seen = state.statistics()
    return {
        "wirepress_ratio": float(seen["ratio"]),
        "wirepress_raw_bytes": float(seen["raw_bytes"]),
        "wirepress_coded_bytes": float(seen["coded_bytes"]),
        "wirepress_plain_bytes": float(seen["plain_bytes"]),
    }


def _size(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:.3g} {unit}"
        n /= 1000
    return f"{n:.3g} TB"
